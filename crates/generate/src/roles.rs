//! The chart's roles, from the table of permissions: one file for each program, and one for each kind that can be left out.

use std::fmt::Write as _;

use prewarm_api::permission::{AGENT, Account, Part, Permission, Scope};

/// Every file by its name.
pub fn files(account: &Account) -> Vec<(String, String)> {
    let parts = Part::ALL.into_iter().filter(|part| account.permissions.iter().any(|one| one.part == *part));
    parts.map(|part| (format!("{}.yaml", name(account, part)), file(account, part))).collect()
}

/// `controller`, or `controller-broadcastjob` for what only BroadcastJobs need.
fn name(account: &Account, part: Part) -> String {
    let component = component(account);
    part.kind().map_or(component.to_owned(), |kind| format!("{component}-{}", kind.to_lowercase()))
}

/// The program, as labels and the chart's helpers name it.
fn component(account: &Account) -> &'static str {
    account.name.trim_start_matches("prewarm-")
}

fn file(account: &Account, part: Part) -> String {
    let roles: Vec<String> = Scope::ALL
        .into_iter()
        .filter(|scope| account.permissions_of(part, *scope).next().is_some())
        .map(|scope| role(account, part, scope) + "---\n" + &binding(account, part, scope))
        .collect();
    let roles = roles.join("---\n");
    let Some(kind) = part.kind() else { return roles };
    format!(
        "{{{{- if .Values.kinds.{} }}}}\n# What only the kind {kind} needs.\n{roles}{{{{- end }}}}\n",
        value_of(kind)
    )
}

fn role(account: &Account, part: Part, scope: Scope) -> String {
    let mut text = head(role_kind(scope), account, part, scope);
    text.push_str("rules:\n");
    for Permission { group, resource, names, verbs, .. } in account.permissions_of(part, scope) {
        let (names, verbs) = (names.join(", "), verbs.join(", "));
        let names = if names.is_empty() { names } else { format!("  resourceNames: [{names}]\n") };
        writeln!(text, "- apiGroups: [{group:?}]\n  resources: [{resource}]\n{names}  verbs: [{verbs}]")
            .expect("writing to a string cannot fail");
    }
    text
}

fn binding(account: &Account, part: Part, scope: Scope) -> String {
    let kind = role_kind(scope);
    let namespace = if account.name == AGENT.name {
        r#"include "prewarm.agentNamespace" ."#
    } else {
        ".Release.Namespace"
    };
    format!(
        "{}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {}\nsubjects:\n- kind: ServiceAccount\n  \
         name: {}\n  namespace: {{{{ {namespace} }}}}\n",
        head(&format!("{kind}Binding"), account, part, scope),
        prefixed(&name(account, part)),
        prefixed(component(account)),
    )
}

/// All that stands above what an object is about.
fn head(kind: &str, account: &Account, part: Part, scope: Scope) -> String {
    let mut text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {}\n",
        prefixed(&name(account, part))
    );
    let namespace = match scope {
        Scope::Cluster => None,
        Scope::ConfigNamespace => Some(".Values.configNamespace.name"),
        Scope::SystemNamespace => Some(".Release.Namespace"),
    };
    if let Some(namespace) = namespace {
        writeln!(text, "  namespace: {{{{ {namespace} }}}}").expect("writing to a string cannot fail");
    }
    let labels = format!("include \"prewarm.labels\" (list . {:?}) | nindent 4", component(account));
    writeln!(text, "  labels:\n    {{{{- {labels} }}}}").expect("writing to a string cannot fail");
    text
}

fn role_kind(scope: Scope) -> &'static str {
    if scope == Scope::Cluster { "ClusterRole" } else { "Role" }
}

/// A name that begins as all names of the release do.
fn prefixed(name: &str) -> String {
    format!("{{{{ include \"prewarm.fullname\" . }}}}-{name}")
}

/// The key of a kind among the chart's values.
pub fn value_of(kind: &str) -> String {
    let mut letters = kind.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}
