use std::fs;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};

use super::*;

/// A directory of hosts with one file for `example.com`.
struct Node {
    root: tempfile::TempDir,
}

impl Node {
    fn empty() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn of(text: &str) -> Self {
        Self::empty().with("example.com", text)
    }

    fn with(self, directory: &str, text: &str) -> Self {
        self.put(&format!("{directory}/hosts.toml"), text);
        self
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, registry: &str) -> Hosts {
        Hosts::read(&self.settings(false), registry)
    }

    fn settings(&self, shares_network: bool) -> Settings {
        Settings { roots: vec![self.root.path().to_owned()], shares_network }
    }

    /// The mirrors of `example.com`, and the reasons why there are no more.
    fn answer(&self) -> (Vec<String>, Vec<Reason>) {
        let hosts = self.read("example.com");
        (names(&hosts), hosts.problems.into_iter().map(|problem| problem.reason).collect())
    }
}

fn names(hosts: &Hosts) -> Vec<String> {
    hosts.mirrors.iter().map(ToString::to_string).collect()
}

fn mirrors(text: &str) -> (Vec<String>, Vec<Reason>) {
    Node::of(text).answer()
}

fn only(mirrors: &[&str]) -> (Vec<String>, Vec<Reason>) {
    (mirrors.iter().map(ToString::to_string).collect(), Vec::new())
}

/// ofen C29
#[test]
fn one_pull_mirror_is_the_mirror() {
    let text = r#"
        server = "https://example.com"
        [host."https://mirror.example"]
        capabilities = ["pull"]
    "#;
    assert_eq!(mirrors(text), only(&["https://mirror.example"]));
}

/// ofen C30
#[test]
fn two_pull_mirrors_are_asked_in_the_order_of_the_file() {
    let text = r#"
        server = "https://example.com"
        [host."https://z.example"]
        capabilities = ["pull"]
        [host."http://a.example:5000"]
        capabilities = ["pull"]
    "#;
    assert_eq!(mirrors(text), only(&["https://z.example", "http://a.example:5000"]));
}

/// ofen C31
#[test]
fn a_mirror_that_resolves_too_may_be_asked_for_tags() {
    let node = Node::of(
        r#"
        [host."https://resolver.example"]
        capabilities = ["Pull", "resolve"]
        [host."https://puller.example"]
        capabilities = ["pull"]
        [host."https://all.example"]
        "#,
    );
    let may_resolve: Vec<bool> =
        node.read("example.com").mirrors.iter().map(|mirror| mirror.may_resolve).collect();
    assert_eq!(may_resolve, [true, false, true]);
}

/// ofen C32
#[test]
fn a_push_only_mirror_is_none() {
    let text = "[host.\"https://mirror.example\"]\ncapabilities = [\"push\"]";
    assert_eq!(mirrors(text), (vec![], vec![Reason::NoMirror]));
}

/// ofen C33
#[test]
fn a_server_without_hosts_is_no_mirror() {
    for server in ["https://example.com", "https://mirror.example"] {
        assert_eq!(mirrors(&format!("server = \"{server}\"")), (vec![], vec![Reason::NoMirror]));
    }
}

/// ofen C34
#[test]
fn an_empty_file_has_no_mirrors() {
    assert_eq!(mirrors(""), (vec![], vec![Reason::NoMirror]));
}

/// ofen C35
#[test]
fn an_unknown_capability_leaves_no_mirrors_as_containerd_ignores_the_file() {
    let text = r#"
        [host."https://good.example"]
        [host."https://odd.example"]
        capabilities = ["pull", "fly"]
    "#;
    assert_eq!(mirrors(text), (vec![], vec![Reason::Capability("fly".into())]));
}

/// ofen C36
#[test]
fn broken_toml_leaves_no_mirrors_and_the_line_is_named() {
    let node = Node::of(
        "server = \"https://example.com\"\n[host.\"https://m.example\"]\nheader = { a = \"s3cret }\n",
    );
    let hosts = node.read("example.com");
    assert_eq!(names(&hosts), Vec::<String>::new());
    assert!(matches!(hosts.problems[0].reason, Reason::Syntax { line: 3, .. }), "{:?}", hosts.problems);
    let sentence = hosts.why_none();
    assert!(sentence.contains("example.com/hosts.toml: line 3"), "{sentence}");
    assert!(!sentence.contains("s3cret"), "{sentence}");
}

#[test]
fn the_registry_itself_is_never_a_mirror_by_whatever_name() {
    let text = |host: &str| format!("server = \"https://real.example\"\n[host.\"{host}\"]\n");
    for host in ["https://example.com", "http://EXAMPLE.com", "https://real.example/v2", "example.com."] {
        assert_eq!(mirrors(&text(host)), (vec![], vec![Reason::Upstream]), "{host}");
    }
    assert_eq!(mirrors(&text("https://example.com:5000")), only(&["https://example.com:5000"]));
}

#[test]
fn docker_hub_is_never_a_mirror_of_itself() {
    let text = r#"
        [host."https://registry-1.docker.io"]
        [host."https://mirror.example"]
        [host."https://index.docker.io"]
    "#;
    let hosts = Node::empty().with("docker.io", text).read("docker.io");
    assert_eq!(names(&hosts), ["https://mirror.example"]);
    assert_eq!(hosts.problems.len(), 2);
    assert!(hosts.upstream.is("auth.docker.io", 443));
}

#[test]
fn the_most_specific_directory_counts() {
    let file = |mirror: &str| format!("[host.\"https://{mirror}.example\"]");
    let node = Node::empty().with("_default", &file("default"));
    let mirror = |node: &Node| names(&node.read("reg.example:5000"));
    assert_eq!(mirror(&node), ["https://default.example"]);
    let node = node.with("reg.example:5000", &file("colon"));
    assert_eq!(mirror(&node), ["https://colon.example"]);
    let node = node.with("reg.example_5000_", &file("underscore"));
    assert_eq!(mirror(&node), ["https://underscore.example"]);
    assert_eq!(names(&node.read("reg.example")), ["https://default.example"]);
}

#[test]
fn without_any_file_the_directories_that_were_looked_for_are_named() {
    let node = Node::empty();
    let hosts = node.read("reg.example:5000");
    assert_eq!(hosts.looked_for.len(), 3);
    let sentence = hosts.why_none();
    for part in ["reg.example_5000_", "/reg.example:5000", "/_default", "--containerd-host-dir"] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    let nowhere = Settings { roots: vec!["/does/not/exist".into()], shares_network: false };
    let sentence = Hosts::read(&nowhere, "docker.io").why_none();
    assert!(sentence.contains("/does/not/exist does not exist"), "{sentence}");
}

#[test]
fn a_directory_without_a_file_ends_the_search_as_in_containerd() {
    let node = Node::empty().with("_default", "[host.\"https://m.example\"]");
    fs::create_dir(node.root.path().join("example.com")).unwrap();
    assert_eq!(node.answer(), (vec![], vec![Reason::NoFile]));
}

#[test]
fn a_link_that_leads_nowhere_for_the_agent_is_said_and_the_default_does_not_count() {
    let node = Node::empty().with("_default", "[host.\"https://m.example\"]");
    let directory = node.root.path().join("example.com");
    std::os::unix::fs::symlink("/opt/hosts/example.com", &directory).unwrap();
    assert_eq!(node.answer(), (vec![], vec![Reason::Dangling]));
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink("/opt/hosts/hosts.toml", directory.join("hosts.toml")).unwrap();
    assert_eq!(node.answer(), (vec![], vec![Reason::Dangling]));
}

#[test]
fn a_later_root_counts_where_an_earlier_one_has_nothing() {
    let (first, second) = (Node::empty(), Node::of("[host.\"https://m.example\"]"));
    let roots = [&first, &second].map(|node| node.root.path().to_owned()).to_vec();
    let hosts = Hosts::read(&Settings { roots, shares_network: false }, "example.com");
    assert_eq!(names(&hosts), ["https://m.example"]);
}

#[test]
fn a_mirror_on_loopback_needs_the_network_of_the_node() {
    let node = Node::of("[host.\"http://127.0.0.1:30020\"]\n[host.\"https://localhost\"]\n");
    assert_eq!(node.answer(), (vec![], vec![Reason::Loopback, Reason::Loopback]));
    let hosts = Hosts::read(&node.settings(true), "example.com");
    assert_eq!(names(&hosts), ["http://127.0.0.1:30020", "https://localhost"]);
}

#[test]
fn hosts_that_containerd_does_not_see_are_said_and_not_asked() {
    let text = r#"
        host."https://dotted.example".capabilities = ["pull"]
        [host]
        "https://inline.example" = { capabilities = ["pull"] }
        [host."https://header.example".header]
        x-custom = "justaheader"
    "#;
    let text = text.replace("host.\"https://dotted.example\".capabilities = [\"pull\"]", "");
    let (mirrors, problems) = mirrors(&text);
    assert_eq!(mirrors, ["https://header.example"]);
    assert_eq!(problems, [Reason::NoHeader]);
    let dotted = "host.\"https://dotted.example\".capabilities = [\"pull\"]";
    assert_eq!(self::mirrors(dotted), (vec![], vec![Reason::NoHeader]));
}

#[test]
fn a_value_of_another_type_makes_the_whole_file_unusable() {
    for line in [
        "capabilities = \"pull\"",
        "capabilities = [1]",
        "ca = 1",
        "ca = [1]",
        "client = [[\"a\", \"b\", \"c\"]]",
        "client = { a = \"b\" }",
        "skip_verify = \"true\"",
        "override_path = 1",
        "dial_timeout = 3",
        "dial_timeout = \"soon\"",
        "header = \"x\"",
        "header = { x = 1 }",
    ] {
        let text = format!("[host.\"https://good.example\"]\n[host.\"https://m.example\"]\n{line}\n");
        let (mirrors, problems) = mirrors(&text);
        assert!(mirrors.is_empty() && matches!(problems[..], [Reason::Type { .. }]), "{line}: {problems:?}");
    }
    assert!(matches!(mirrors("server = 1").1[..], [Reason::Type { .. }]));
    assert!(matches!(mirrors("[[host.\"https://m.example\"]]").1[..], [Reason::Type { .. }]));
}

#[test]
fn everything_that_a_table_says_is_read() {
    let node = Node::of(
        r#"
        [host."https://m.example/us"]
        skip_verify = true
        dial_timeout = "200ms"
        [host."https://m.example/us".header]
        Authorization = "Basic s3cret"
        x-many = ["value1", "value2"]
        Host = "other.example"
        "#,
    );
    let hosts = node.read("example.com");
    let mirror = &hosts.mirrors[0];
    assert_eq!(mirror.address.root, "/us/v2");
    assert_eq!(mirror.table.dial_timeout, Some(Duration::from_millis(200)));
    let headers = mirror.table.headers.0.as_ref().unwrap();
    assert_eq!(headers.get_all("x-many").iter().count(), 2);
    assert!(headers.get("host").is_none());
    assert!(!format!("{hosts:?}").contains("s3cret"), "{hosts:?}");
}

#[test]
fn files_of_tls_are_read_relative_to_the_file_and_each_trouble_has_its_sentence() {
    let key = KeyPair::generate().unwrap();
    let other = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["m.example".into()]).unwrap().self_signed(&key).unwrap().pem();
    let node = Node::empty();
    node.put("example.com/ca.pem", &certificate);
    node.put("example.com/client.pem", &format!("{certificate}{}", key.serialize_pem()));
    node.put("example.com/client.key", &key.serialize_pem());
    node.put("example.com/other.key", &other.serialize_pem());
    let table = [
        ("ca = \"ca.pem\"", ""),
        ("ca = [\"ca.pem\", \"ca.pem\"]", ""),
        ("client = \"client.pem\"", ""),
        ("client = [\"client.pem\"]", ""),
        ("client = [[\"ca.pem\", \"client.key\"], [\"client.pem\", \"\"]]", ""),
        ("ca = \"absent.pem\"", "absent.pem of `ca` cannot be read"),
        ("ca = \"client.key\"", "client.key of `ca` holds no certificate"),
        ("client = \"ca.pem\"", "ca.pem of `client` holds no private key"),
        ("client = [[\"ca.pem\", \"absent.key\"]]", "absent.key of `client` cannot be read"),
        ("client = [[\"ca.pem\", \"other.key\"]]", "cannot be used"),
        ("header = { \"a b\" = \"c\" }", "`a b` is not a header"),
    ];
    for (line, trouble) in table {
        node.put("example.com/hosts.toml", &format!("[host.\"https://m.example\"]\n{line}\n"));
        let hosts = node.read("example.com");
        let sentence = hosts.why_none();
        assert_eq!(hosts.mirrors.len(), usize::from(trouble.is_empty()), "{line}: {sentence}");
        assert!(sentence.contains(trouble), "{line}: {sentence}");
        assert!(trouble.is_empty() || sentence.contains("[host.\"https://m.example\"]"), "{sentence}");
    }
}

#[test]
fn what_exceeds_a_bound_is_said() {
    let tables: Vec<_> = (0..=MAX_MIRRORS).map(|n| format!("[host.\"https://m{n}.example\"]")).collect();
    let (many, problems) = mirrors(&tables.join("\n"));
    assert_eq!((many.len(), problems), (MAX_MIRRORS, vec![Reason::TooManyMirrors]));
    let large = "#".repeat(usize::try_from(lookup::MAX_FILE_BYTES).unwrap() + 1);
    assert_eq!(mirrors(&large), (vec![], vec![Reason::TooLarge]));
    let values = "\"v\",".repeat(table::MAX_HEADERS + 1);
    let headers = format!("[host.\"https://m.example\"]\nheader = {{ x = [{values}] }}\n");
    assert_eq!(mirrors(&headers), (vec![], vec![Reason::TooManyHeaders]));
}

#[test]
fn a_problem_never_shows_credentials_of_an_address() {
    let node = Node::of("[host.\"ftp://annabel:p@ss/w@m.example?token=s3cret\"]\n");
    let sentence = node.read("example.com").why_none();
    assert!(sentence.contains("m.example"), "{sentence}");
    for secret in ["annabel", "p@ss", "s3cret"] {
        assert!(!sentence.contains(secret), "{sentence}");
    }
}
