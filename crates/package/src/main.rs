//! `cargo xtask image` and `cargo xtask release`: takes programs that are built, and makes of them what people install.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand};
use prewarm_image::layout::{self, Entry};
use prewarm_image::push::Repository;
use prewarm_image::{Artifact, referrer};
use prewarm_package::image::{self, Origin, Program};
use prewarm_package::parts::Parts;
use prewarm_package::place::Place;
use prewarm_package::release::{self, Content};
use prewarm_package::{login, notices, sbom};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Image(ImageArgs),
    /// Look whether an image could go there, before the long build of its program
    CheckImage(Destination),
    Release(ReleaseArgs),
}

/// What is packed
#[derive(Args)]
struct Source {
    /// A program that is built, as ARCHITECTURE=TARGET=PATH; several make one index
    #[arg(long = "program", required = true)]
    programs: Vec<Program>,
    /// The commit that it is built from
    #[arg(long)]
    revision: String,
    /// When that was made, in seconds since 1970
    #[arg(long)]
    time: u64,
}

/// Make the image
#[derive(Args)]
struct ImageArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    destination: Destination,
}

/// Where the image goes
#[derive(Args)]
struct Destination {
    /// A directory, or an archive if it ends with .tar; the list of parts is written beside the archive or into the directory
    #[arg(long)]
    output: Option<PathBuf>,
    /// Where to push it, as HOST/REPOSITORY:TAG
    #[arg(long)]
    push: Option<Place>,
    /// Push without TLS
    #[arg(long)]
    plain_http: bool,
}

/// Make the directory of a release
#[derive(Args)]
struct ReleaseArgs {
    #[command(flatten)]
    source: Source,
    /// Where it is to be; an older release there is replaced
    #[arg(long)]
    output: PathBuf,
}

/// The image, what is known of its parts, and the document about them.
struct Packed {
    image: Artifact,
    parts: Parts,
    document: Vec<u8>,
    about: Artifact,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Image(args) => make_image(&args),
        Command::CheckImage(destination) => destination.check(),
        Command::Release(args) => make_release(&args),
    }
}

fn make_image(args: &ImageArgs) -> anyhow::Result<()> {
    let destination = &args.destination;
    let packed = pack(&args.source)?;
    if let Some(output) = &destination.output {
        write(output, &packed)?;
        println!("written to {}", output.display());
    }
    if let Some(place) = &destination.push {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(push(place, destination.plain_http, &packed))?;
        println!("pushed to {place}");
    }
    Ok(())
}

fn make_release(args: &ReleaseArgs) -> anyhow::Result<()> {
    let packed = pack(&args.source)?;
    let program = |program: &Program| {
        let content = fs::read(&program.path);
        let content = content.with_context(|| format!("reading {}", program.path.display()))?;
        anyhow::Ok((program.architecture.clone(), content))
    };
    let content = Content {
        image: packed.archive(),
        notices: notices::render(&packed.parts)?,
        programs: args.source.programs.iter().map(program).collect::<Result<_, _>>()?,
        time: args.source.time,
        parts: packed.document,
    };
    let files = release::gather(&prewarm_package::root(), content)?;
    release::write(&args.output, &files)?;
    println!("{} files written to {}", files.len(), args.output.display());
    Ok(())
}

fn pack(source: &Source) -> anyhow::Result<Packed> {
    let origin = Origin { revision: source.revision.clone(), time: source.time };
    let parts = Parts::of_programs(&source.programs)?;
    let document = sbom::render(&parts, &origin)?;
    let image = image::build(&source.programs, &origin)?;
    let about = referrer::document(&image, sbom::MEDIA_TYPE, sbom::FILE_NAME, document.clone());
    describe(&source.programs, &image)?;
    Ok(Packed { image, parts, document, about })
}

impl Packed {
    fn archive(&self) -> Vec<u8> {
        let name = image::reference();
        layout::to_archive(&self.entries(&name))
    }

    fn entries<'a>(&'a self, name: &'a str) -> [Entry<'a>; 2] {
        [Entry { name: Some(name), artifact: &self.image }, Entry { name: None, artifact: &self.about }]
    }
}

/// What it has become, a line each.
fn describe(programs: &[Program], image: &Artifact) -> anyhow::Result<()> {
    for program in programs {
        let size =
            fs::metadata(&program.path).with_context(|| format!("reading {}", program.path.display()))?;
        println!("program for linux/{}: {} bytes", program.architecture, size.len());
    }
    println!("image: {} bytes compressed, {}", image.size(), image.digest());
    Ok(())
}

impl Destination {
    fn check(&self) -> anyhow::Result<()> {
        match &self.output {
            Some(directory) if !is_archive(directory) => check_directory(directory),
            _ => Ok(()),
        }
    }
}

fn is_archive(output: &Path) -> bool {
    output.extension().is_some_and(|end| end == "tar")
}

/// Nothing but an older image may be in it.
fn check_directory(output: &Path) -> anyhow::Result<()> {
    let is_free = fs::read_dir(output).map_or(true, |mut entries| entries.next().is_none());
    ensure!(
        is_free || output.join("oci-layout").exists(),
        "{} has other files in it; name an empty directory",
        output.display()
    );
    Ok(())
}

fn write(output: &Path, packed: &Packed) -> anyhow::Result<()> {
    let beside = if is_archive(output) {
        let folder = output.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(output, packed.archive()).with_context(|| format!("writing {}", output.display()))?;
        folder
    } else {
        check_directory(output)?;
        layout::write(output, &packed.entries(&image::reference()))
            .with_context(|| format!("writing {}", output.display()))?;
        output
    };
    let path = beside.join(sbom::FILE_NAME);
    fs::write(&path, &packed.document).with_context(|| format!("writing {}", path.display()))
}

async fn push(place: &Place, is_plain: bool, packed: &Packed) -> anyhow::Result<()> {
    let login = login::find(place);
    let Place { host, name, tag } = place;
    let repository =
        if is_plain { Repository::plain(host, name, login) } else { Repository::new(host, name, login)? };
    let pushed = async {
        repository.push(&[tag], &packed.image).await?;
        repository.refer(&packed.image, &packed.about).await
    };
    pushed.await.with_context(|| {
        let (user, password) = (login::USER, login::PASSWORD);
        format!("pushing to {place} (a login is read from {user} and {password}, or from what `docker login` left)")
    })
}
