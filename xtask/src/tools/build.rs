//! Builds pinned Go modules, and what they have in C, into the cache.
//!
//! A build works in a directory of its own, with Go's caches in it unless the environment names others, and only the
//! finished programs are moved to their place. So a killed build leaves nothing that looks finished, and the
//! gigabytes that Go caches along the way are gone afterwards.
//!
//! Modules are built one after the other: what one has compiled, the next takes from Go's cache. Side by side they would
//! compile the same packages at the same time. While one is built, the sources of the next are fetched.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use prewarm_bed::programs::{Module, NativeProgram, cache_directory};

use crate::duration::readable;

/// Collecting garbage is a tenth of the compiler's work. Packages are small enough to let it have the memory.
const GARBAGE: &str = "400";

/// Nobody debugs these programs; the linker would drop what the compiler writes for it, a fifth of its work on big packages.
const COMPILER_FLAGS: &str = "all=-dwarf=false";

/// Optimizing `SQLite` takes gcc longer than Go takes for the rest of CRI-O, and nothing in C here computes for long.
const C_FLAGS: &str = "-O0";

/// What directories of builds begin with.
const WORKSHOP: &str = "building-";

/// How much of a step's output an error shows.
const TAIL_LINES: usize = 20;

/// Builds the modules that are absent.
pub fn build(modules: &[&Module]) -> anyhow::Result<()> {
    let cache = cache_directory();
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    let _lock = lock(&cache.join("lock"))?;
    remove_leftovers(&cache)?;
    // Whoever held the lock may have built them.
    let absent = modules.iter().copied().filter(|module| !module.is_present());
    let workshop = Workshop::open(&cache)?;
    let (fetched, to_build) = mpsc::channel();
    thread::scope(|scope| {
        let workshop = &workshop;
        scope.spawn(move || fetch_all(workshop, absent, &fetched));
        for (module, outcome) in to_build {
            let name = format!("{} {}", module.name, module.version());
            outcome.with_context(|| format!("fetching {name}"))?;
            workshop.build(module, &cache).with_context(|| format!("building {name}"))?;
        }
        Ok(())
    })
}

/// Fetches one module after the other, until nobody builds any more.
fn fetch_all<'a>(
    workshop: &Workshop,
    modules: impl Iterator<Item = &'a Module>,
    fetched: &mpsc::Sender<(&'a Module, anyhow::Result<()>)>,
) {
    for module in modules {
        if fetched.send((module, workshop.fetch(module))).is_err() {
            return;
        }
    }
}

/// Two builds at once would only do the same work twice.
pub fn lock(file: &Path) -> anyhow::Result<File> {
    let file = File::create(file).context("creating the lock of the cache")?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            println!("waiting for another build of the same programs");
            file.lock().context("waiting for the lock of the cache")?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("locking the cache"),
    }
    Ok(file)
}

/// Removes what killed builds left; the lock says that nobody builds.
fn remove_leftovers(cache: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(cache).context("reading the cache")? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(WORKSHOP) {
            fs::remove_dir_all(entry.path()).context("removing a killed build")?;
        }
    }
    Ok(())
}

/// The directory of a build, removed at its end.
struct Workshop {
    directory: PathBuf,
}

impl Workshop {
    fn open(cache: &Path) -> anyhow::Result<Self> {
        let directory = cache.join(format!("{WORKSHOP}{}", std::process::id()));
        fs::create_dir(&directory).context("creating the build directory")?;
        Ok(Self { directory })
    }

    /// Lays the module out, and fetches the sources that its programs need.
    fn fetch(&self, module: &Module) -> anyhow::Result<()> {
        let source = self.source(module);
        fs::create_dir_all(&source)?;
        fs::write(source.join("go.mod"), module.go_mod)?;
        fs::write(source.join("go.sum"), module.go_sum)?;
        for (name, text) in module.sources {
            fs::write(source.join(name), text)?;
        }
        let mut command = self.go("list", module);
        command.arg("-deps").args(module.programs.iter().map(|program| program.package));
        run(command)?;
        Ok(())
    }

    fn build(&self, module: &Module, cache: &Path) -> anyhow::Result<()> {
        let names: Vec<&str> = module.names().collect();
        println!("{} {}: building {}", module.name, module.version(), names.join(", "));
        let start = Instant::now();
        let programs = self.source(module).join("programs");
        fs::create_dir_all(&programs)?;
        run(self.go_build(module, &programs))?;
        for program in module.native.iter().flat_map(|native| native.programs) {
            let tree = run(self.go_list(module))?;
            run(compile(program, Path::new(tree.trim()), &programs))?;
        }
        for name in names {
            ensure!(programs.join(name).is_file(), "the build gave no {name}");
        }
        fs::rename(&programs, cache.join(module.folder())).context("moving the programs into the cache")?;
        println!("{} {}: ready after {}", module.name, module.version(), readable(start.elapsed()));
        Ok(())
    }

    fn go_build(&self, module: &Module, programs: &Path) -> Command {
        let mut command = self.go("build", module);
        // Not `-trimpath`: with it, a module that is replaced by another version of itself is compiled again.
        command.args(["-gcflags", COMPILER_FLAGS, "-ldflags", &module.linker_flags()]);
        command.arg("-o");
        match module.programs {
            [program] => command.arg(programs.join(program.name)),
            // Several take the names of their packages.
            _ => command.arg(programs),
        };
        command.args(module.programs.iter().map(|program| program.package));
        command
    }

    /// Prints where Go keeps the module's files.
    fn go_list(&self, module: &Module) -> Command {
        let mut command = self.go("list", module);
        command.args(["-m", "-f", "{{.Dir}}", module.path]);
        command
    }

    fn go(&self, verb: &str, module: &Module) -> Command {
        let source = self.source(module);
        let mut command = Command::new("go");
        // Read-only is Go's habit for its module cache, and would keep us from removing it.
        command.args([verb, "-modcacherw", "-tags", &module.tags()]);
        command.current_dir(&source).env("GOWORK", "off").env("GOTMPDIR", &source);
        command.env("CGO_ENABLED", if module.native.is_some() { "1" } else { "0" });
        command.env("CGO_CFLAGS", C_FLAGS).env("GOGC", GARBAGE);
        for (variable, folder) in [("GOCACHE", "go-build"), ("GOMODCACHE", "go-mod")] {
            if env::var_os(variable).is_none() {
                command.env(variable, self.directory.join(folder));
            }
        }
        command
    }

    fn source(&self, module: &Module) -> PathBuf {
        self.directory.join(module.name)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("cannot remove {}: {error}", self.directory.display());
        }
    }
}

/// Static, so that it runs on any machine of the same processor.
fn compile(program: &NativeProgram, tree: &Path, programs: &Path) -> Command {
    let mut command = Command::new("gcc");
    command.args(["-std=c99", "-Os", "-static", "-o"]).arg(programs.join(program.name));
    command.args(program.sources.iter().map(|source| tree.join(source)));
    command
}

/// Runs one step and returns what it prints.
fn run(mut command: Command) -> anyhow::Result<String> {
    let step = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {step}"))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).with_context(|| format!("{step} printed no text"));
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = complaints.lines().filter(|line| !line.starts_with("go: downloading ")).collect();
    anyhow::bail!("{step} said\n{}", lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}
