//! `cargo xtask image`: takes programs that are built, and makes of them what people install.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand};
use prewarm_image::layout::{self, Entry};
use prewarm_image::push::{Login, Repository};
use prewarm_image::{Artifact, referrer};
use prewarm_package::image::{self, Origin, Program};
use prewarm_package::parts::Parts;
use prewarm_package::place::Place;
use prewarm_package::sbom;

/// Who pushes, if the registry asks.
const USER: &str = "REGISTRY_USER";
const PASSWORD: &str = "REGISTRY_PASSWORD";

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Image(ImageArgs),
}

/// Make the image
#[derive(Args)]
struct ImageArgs {
    /// A program that is built, as ARCHITECTURE=TARGET=PATH; several make one index
    #[arg(long = "program", required = true)]
    programs: Vec<Program>,
    /// The commit that it is built from
    #[arg(long)]
    revision: String,
    /// When that was made, in seconds since 1970
    #[arg(long)]
    time: u64,
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

fn main() -> anyhow::Result<()> {
    let Command::Image(args) = Cli::parse().command;
    let origin = Origin { revision: args.revision.clone(), time: args.time };
    let parts = Parts::of_programs(&args.programs)?;
    let document = sbom::render(&parts, &origin)?;
    let image = image::build(&args.programs, &origin)?;
    let about = referrer::document(&image, sbom::MEDIA_TYPE, sbom::FILE_NAME, document.clone());
    describe(&args.programs, &image)?;
    if let Some(output) = &args.output {
        write(output, &image, &about, &document)?;
        println!("written to {}", output.display());
    }
    if let Some(place) = &args.push {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(push(place, args.plain_http, &image, &about))?;
        println!("pushed to {place}");
    }
    Ok(())
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

fn write(output: &Path, image: &Artifact, about: &Artifact, document: &[u8]) -> anyhow::Result<()> {
    let name = image::reference();
    let entries =
        [Entry { name: Some(name.as_str()), artifact: image }, Entry { name: None, artifact: about }];
    let beside = if output.extension().is_some_and(|end| end == "tar") {
        let folder = output.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(output, layout::to_archive(&entries))
            .with_context(|| format!("writing {}", output.display()))?;
        folder
    } else {
        let is_free = fs::read_dir(output).map_or(true, |mut entries| entries.next().is_none());
        ensure!(
            is_free || output.join("oci-layout").exists(),
            "{} has other files in it; name an empty directory",
            output.display()
        );
        layout::write(output, &entries).with_context(|| format!("writing {}", output.display()))?;
        output
    };
    let path = beside.join(sbom::FILE_NAME);
    fs::write(&path, document).with_context(|| format!("writing {}", path.display()))
}

async fn push(place: &Place, is_plain: bool, image: &Artifact, about: &Artifact) -> anyhow::Result<()> {
    let login = match (std::env::var(USER), std::env::var(PASSWORD)) {
        (Ok(user), Ok(password)) => Some(Login { user, password }),
        _ => None,
    };
    let Place { host, name, tag } = place;
    let repository =
        if is_plain { Repository::plain(host, name, login) } else { Repository::new(host, name, login)? };
    let pushed = async {
        repository.push(&[tag], image).await?;
        repository.refer(image, about).await
    };
    pushed.await.with_context(|| format!("pushing to {place} (a login is read from {USER} and {PASSWORD})"))
}
