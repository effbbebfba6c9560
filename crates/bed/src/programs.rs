//! The pinned programs of a real cluster, and their paths.
//!
//! Each [`Module`] is a folder under `tools/` with a `go.mod` that names the version and a `go.sum` that fixes every
//! byte. `cargo xtask tools` builds them into a per-user cache; this module only knows the paths.

mod modules;

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

pub use modules::MODULES;

/// A directory of existing programs to use instead of the cache.
pub const TOOLS_VARIABLE: &str = "PREWARM_TOOLS";

/// The same for what `setup-envtest` downloads. It holds only etcd, kube-apiserver and kubectl.
pub const ENVTEST_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Build tags of every module: Go itself looks up names of hosts and users, never libc. Modules with parts in C would
/// otherwise have another `net` than the rest, and nearly every package would be compiled twice.
const TAGS: [&str; 2] = ["netgo", "osusergo"];

/// The version of a module that has none besides that of the tree.
const OURS: &str = "ours";

/// One Go module and the programs that are built from it together.
pub struct Module {
    /// The folder under `tools/`.
    pub name: &'static str,
    /// The module whose version counts for all of its programs.
    pub path: &'static str,
    pub programs: &'static [Program],
    /// The Go package whose `gitVersion` variables the linker sets. Without them Kubernetes reports v0.0.0, and clients
    /// that compare versions draw the wrong conclusions.
    pub version_package: Option<&'static str>,
    pub go_mod: &'static str,
    pub go_sum: &'static str,
    /// Source files of our own, by name, for what no published program does.
    pub sources: &'static [(&'static str, &'static str)],
    /// What differs for a module that is not pure Go.
    pub native: Option<Native>,
}

/// How the parts of a module that are written in C are built. This needs a C compiler and libraries with their headers.
pub struct Native {
    /// Go's build tags besides the usual ones: which of the C libraries are used.
    pub tags: &'static [&'static str],
    /// The module's programs in C.
    pub programs: &'static [NativeProgram],
}

/// One executable in C.
pub struct NativeProgram {
    pub name: &'static str,
    /// Its source files, as paths inside the module.
    pub sources: &'static [&'static str],
}

/// One executable.
pub struct Program {
    pub name: &'static str,
    /// The Go package of its `main`.
    pub package: &'static str,
}

impl Module {
    /// The pinned version without its `v`, as `go.mod` has it.
    pub fn version(&self) -> &'static str {
        if self.is_ours() {
            return OURS;
        }
        self.go_mod
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("require ").strip_prefix(self.path))
            .find_map(|rest| rest.strip_prefix(" v"))
            .and_then(|rest| rest.split_whitespace().next())
            .expect("go.mod requires the module that it pins")
    }

    /// Whether all of it is in our tree, so that there is nothing to pin.
    fn is_ours(&self) -> bool {
        self.go_mod.lines().next().and_then(|line| line.strip_prefix("module ")) == Some(self.path)
    }

    /// The oldest Go release that can build it.
    pub fn go_version(&self) -> &'static str {
        self.go_mod
            .lines()
            .find_map(|line| line.strip_prefix("go "))
            .expect("go.mod names the Go release that it needs")
    }

    /// The cache folder of its programs. Any change of a pin, a program or a flag gives another folder.
    pub fn folder(&self) -> String {
        let (linker_flags, tags) = (self.linker_flags(), self.tags());
        let programs = self.programs.iter().map(|program| program.package);
        let sources = self.sources.iter().map(|(_, source)| *source);
        let native =
            self.native.iter().flat_map(|native| native.programs).flat_map(|program| program.sources);
        let pins = [self.go_mod, self.go_sum, &linker_flags, &tags];
        let recipe: Vec<&str> =
            pins.into_iter().chain(programs).chain(sources).chain(native.copied()).collect();
        folder(self.name, self.version(), &recipe)
    }

    /// Go's build tags, in the form of its command line.
    pub fn tags(&self) -> String {
        let native = self.native.iter().flat_map(|native| native.tags);
        TAGS.iter().chain(native).copied().collect::<Vec<_>>().join(",")
    }

    /// Strips symbols, and sets the version that a program reports.
    pub fn linker_flags(&self) -> String {
        let mut flags = String::from("-s -w");
        if let Some(package) = self.version_package {
            let version = self.version();
            let mut numbers = version.split('.');
            let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            for (variable, value) in
                [("gitVersion", format!("v{version}").as_str()), ("gitMajor", major), ("gitMinor", minor)]
            {
                write!(flags, " -X {package}.{variable}={value}").expect("writing to a string cannot fail");
            }
        }
        flags
    }

    /// Whether each of its programs exists where [`locate`] looks.
    pub fn is_present(&self) -> bool {
        self.names().all(|program| locate(program).is_ok())
    }

    /// The names of all its programs.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let native = self.native.iter().flat_map(|native| native.programs).map(|program| program.name);
        self.programs.iter().map(|program| program.name).chain(native)
    }
}

/// A pinned program that exists nowhere.
#[derive(Debug, Error)]
#[error(
    "{program} is not built: run `cargo xtask tools`, or let {TOOLS_VARIABLE} name a directory that has it"
)]
pub struct NotBuilt {
    pub program: String,
}

/// The path of a pinned program: in `PREWARM_TOOLS`, in `KUBEBUILDER_ASSETS`, or in the cache, in that order.
pub fn locate(program: &str) -> Result<PathBuf, NotBuilt> {
    let given = [TOOLS_VARIABLE, ENVTEST_VARIABLE].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let cached = MODULES
        .iter()
        .filter(|module| module.names().any(|candidate| candidate == program))
        .map(|module| cache_directory().join(module.folder()));
    first_with(program, given.chain(cached)).ok_or_else(|| NotBuilt { program: program.to_owned() })
}

fn first_with(program: &str, mut directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    directories.find_map(|directory| Some(directory.join(program)).filter(|path| path.is_file()))
}

/// The cache folder of something that is built by this recipe. Any change of the recipe gives another folder.
pub fn folder(name: &str, version: &str, recipe: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in recipe {
        hash.update(part);
    }
    let mut folder = format!("{name}-{version}-");
    for byte in &hash.finalize()[..5] {
        write!(folder, "{byte:02x}").expect("writing to a string cannot fail");
    }
    folder
}

/// The directory of built programs, with one folder per module and pin.
pub fn cache_directory() -> PathBuf {
    let absolute =
        |variable| env::var_os(variable).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(|| Path::new("/var/cache").to_owned())
        .join("prewarm/tools")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn versions_come_from_the_pinned_modules() {
        let versions: Vec<_> = MODULES.iter().map(|module| (module.name, module.version())).collect();
        assert_eq!(
            versions,
            [
                ("kubernetes", "1.36.4"),
                ("containerd", "2.4.2"),
                ("containerd22", "2.2.9"),
                ("containerd17", "1.7.35"),
                ("crio", "1.34.0"),
                ("helm", "4.2.4"),
                ("registry", "3.0.0"),
                ("etcd", "3.7.3"),
                ("runc", "1.3.3"),
                ("cni", "1.9.1"),
                ("oldest", "0.30.14"),
                ("workload", "ours"),
            ]
        );
    }

    /// A package is compiled once for all modules that have it in the same version, with the same versions below it.
    /// Kubernetes keeps its own versions, because the embedded API is compared with it.
    #[test]
    fn modules_agree_on_the_libraries_below_most_packages() {
        for library in
            ["golang.org/x/net", "golang.org/x/sys", "golang.org/x/text", "google.golang.org/protobuf"]
        {
            assert_one_version(library, &["kubernetes", "helm", "oldest"]);
            assert_one_version(library, &["containerd", "crio", "registry", "etcd", "runc", "cni"]);
            assert_one_version(library, &["containerd", "containerd22", "containerd17"]);
        }
        for library in ["google.golang.org/grpc", "go.opentelemetry.io/otel", "github.com/sirupsen/logrus"] {
            assert_one_version(library, &["containerd", "crio", "registry", "etcd", "runc"]);
            assert_one_version(library, &["containerd", "containerd22", "containerd17"]);
        }
        for library in ["k8s.io/client-go", "k8s.io/apimachinery", "github.com/go-openapi/swag"] {
            assert_one_version(library, &["kubernetes", "helm"]);
        }
    }

    fn assert_one_version(library: &str, modules: &[&str]) {
        let version = |module: &Module| {
            let lines = || module.go_mod.lines().map(str::trim);
            let replaced = lines().find_map(|line| line.strip_prefix(&format!("{library} => {library} v")));
            let required = || lines().find_map(|line| line.strip_prefix(&format!("{library} v")));
            replaced.or_else(required).map(|rest| rest.split(' ').next().unwrap_or_default())
        };
        let modules = MODULES.iter().filter(|module| modules.contains(&module.name));
        let versions: BTreeSet<_> = modules.filter_map(version).collect();
        assert_eq!(versions.len(), 1, "{library}: {versions:?}");
    }

    #[test]
    fn the_linker_sets_the_version_of_kubernetes() {
        let flags = MODULES[0].linker_flags();
        assert!(flags.contains("version.gitVersion=v1.36.4 "), "{flags}");
        assert!(flags.ends_with("version.gitMinor=36"), "{flags}");
    }

    #[test]
    fn folders_differ_and_name_the_version() {
        let folders: BTreeSet<_> = MODULES.iter().map(Module::folder).collect();
        assert_eq!(folders.len(), MODULES.len());
        assert!(folders.iter().any(|folder| folder.starts_with("etcd-3.7.3-")), "{folders:?}");
    }

    #[test]
    fn the_first_directory_that_has_a_program_wins() {
        let [empty, full] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(full.path().join("etcd"), "").unwrap();
        let directories = || [empty.path().to_owned(), full.path().to_owned()].into_iter();
        assert_eq!(first_with("etcd", directories()), Some(full.path().join("etcd")));
        assert_eq!(first_with("kubectl", directories()), None);
    }
}
