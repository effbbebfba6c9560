//! The image on real parts: its program starts in it and looks names up, and a registry takes it with its list of parts.

#[path = "shared/release.rs"]
mod release;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use prewarm_api::crd;
use prewarm_bed::commands;
use prewarm_bed::inside::{self, BRIDGE_ADDRESS};
use prewarm_image::push::Repository;
use prewarm_image::{Artifact, referrer};
use prewarm_testkit::{ApiServer, Registry, install, real_tests};
use serde_json::{Value, json};
use tokio::net::UdpSocket;

use release::image;

real_tests! {
    the_program_looks_names_up_inside_of_its_image,
    a_registry_takes_the_image_and_names_its_parts,
    what_is_in_a_release_is_what_its_sums_say,
}

/// Of an answer to a question about a name: one address, for a minute.
const ADDRESS_RECORD: [u8; 12] = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4];
/// A packet of that protocol begins with so many bytes, and the name follows.
const HEADER: usize = 12;

/// Unpacks the only layer.
fn unpack(image: &Artifact) -> anyhow::Result<PathBuf> {
    let root = inside::directory("image")?;
    let layer = image.blobs.get(1).context("the image has a layer")?;
    tar::Archive::new(GzDecoder::new(layer.bytes.as_slice())).unpack(&root).context("unpacking the image")?;
    // Every container has one.
    let devices = root.join("dev");
    fs::create_dir(&devices)?;
    let mounted = Command::new("mount").args(["--rbind", "/dev"]).arg(&devices).status();
    ensure!(mounted.context("starting mount")?.success(), "mounting the devices");
    Ok(root)
}

/// Runs the program in its image, as a pod does: another root directory, nobody in particular, no variables.
async fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    // Found before the variables are gone that say where to look.
    let mut command = Command::new(commands::find("chroot").context("chroot is missing")?);
    command.arg("--userspec=65532:65532").arg(root).arg("/prewarm").args(arguments).env_clear();
    let output = tokio::process::Command::from(command).output().await.context("starting chroot")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(said)
}

async fn the_program_looks_names_up_inside_of_its_image() -> anyhow::Result<()> {
    let (image, _) = image()?;
    let root = unpack(&image)?;
    ensure!(run(&root, &["version"]).await?.trim() == env!("CARGO_PKG_VERSION"));
    let server = ApiServer::shared().await?;
    install::definitions(&server.client()?, crd::all()).await?;
    // A kubelet writes both of these into every pod.
    fs::write(root.join("etc/hosts"), format!("{BRIDGE_ADDRESS} in-the-file.example\n"))?;
    fs::write(root.join("etc/resolv.conf"), format!("nameserver {BRIDGE_ADDRESS}\n"))?;
    let socket = UdpSocket::bind((BRIDGE_ADDRESS, 53)).await.context("opening the port for names")?;
    let answering = tokio::spawn(answer_names(socket));
    for host in ["in-the-file.example", "asked-for.example"] {
        fs::write(root.join("kubeconfig"), kubeconfig(server, host)?)?;
        run(&root, &["nodes", "--kubeconfig", "/kubeconfig"])
            .await
            .with_context(|| format!("asking {host}"))?;
    }
    answering.abort();
    Ok(())
}

/// The kubeconfig of the administrator, with everything in one file and another name of the server.
fn kubeconfig(server: &ApiServer, host: &str) -> anyhow::Result<String> {
    let path = server.kubeconfig_as("administrator", Some("system:masters"))?;
    let mut config: Value = serde_json::from_slice(&fs::read(path)?)?;
    let inline = |object: &mut Value| -> anyhow::Result<()> {
        for field in ["certificate-authority", "client-certificate", "client-key"] {
            if let Some(path) = object[field].as_str().map(str::to_owned) {
                object[format!("{field}-data")] = json!(BASE64_STANDARD.encode(fs::read(path)?));
                object[field] = Value::Null;
            }
        }
        Ok(())
    };
    let cluster = &mut config["clusters"][0]["cluster"];
    let address = cluster["server"].as_str().context("a server")?.replace(&BRIDGE_ADDRESS.to_string(), host);
    cluster["server"] = json!(address);
    // The certificate does not have that name.
    cluster["tls-server-name"] = json!("localhost");
    inline(cluster)?;
    inline(&mut config["users"][0]["user"])?;
    Ok(config.to_string())
}

/// Answers every question for an address with that of the bridge, and any other with nothing.
async fn answer_names(socket: UdpSocket) -> anyhow::Result<()> {
    let mut packet = [0; 512];
    loop {
        let (length, asker) = socket.recv_from(&mut packet).await?;
        let question = packet.get(HEADER..length).context("a question")?;
        let name = question.iter().position(|byte| *byte == 0).context("a name ends")? + 1;
        // Type and class of the question follow; an address is of type 1.
        let is_for_address = question.get(name..name + 4) == Some(&[0, 1, 0, 1]);
        let mut answer = packet[..HEADER + name + 4].to_vec();
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        // One question as it came, so many answers, and nothing more.
        answer[6..HEADER].copy_from_slice(&[0, u8::from(is_for_address), 0, 0, 0, 0]);
        if is_for_address {
            answer.extend(ADDRESS_RECORD);
            answer.extend(Ipv4Addr::octets(&BRIDGE_ADDRESS));
        }
        socket.send_to(&answer, asker).await?;
    }
}

async fn a_registry_takes_the_image_and_names_its_parts() -> anyhow::Result<()> {
    let (image, parts) = image()?;
    let registry = Registry::start().await?;
    let name = "prewarm/prewarm";
    let repository = Repository::plain(registry.host(), name, None);
    repository.push(&["latest"], &image).await?;
    repository.refer(&image, &parts).await?;
    let stored = repository.manifest("latest").await?;
    ensure!(stored == image.root().blob.bytes, "the registry has another image");
    // This registry has no API for referrers, so clients look for a tag.
    let list: Value = serde_json::from_slice(&repository.manifest(&referrer::tag(image.digest())).await?)?;
    ensure!(list["manifests"][0]["digest"] == parts.digest(), "{list}");
    let about: Value = serde_json::from_slice(&repository.manifest(parts.digest()).await?)?;
    ensure!(about["subject"]["digest"] == image.digest(), "{about}");
    let document: Value = serde_json::from_slice(&parts.blobs[1].bytes)?;
    let components = document["components"].as_array().into_iter().flatten();
    let names: Vec<&str> = components.filter_map(|part| part["name"].as_str()).collect();
    ensure!(names.contains(&"kube-client") && !names.contains(&"prewarm-embedded"), "{names:?}");
    Ok(())
}

async fn what_is_in_a_release_is_what_its_sums_say() -> anyhow::Result<()> {
    let sums = release::file(prewarm_package::release::SUMS)?;
    let directory = sums.parent().context("a file is in a directory")?;
    let mut command = Command::new(commands::find("sha256sum").context("sha256sum is missing")?);
    command.args(["--check", "--strict"]).arg(&sums).current_dir(directory);
    let output = tokio::process::Command::from(command).output().await.context("starting sha256sum")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{said}");
    ensure!(said.lines().count() + 1 == fs::read_dir(directory)?.count(), "a file has no sum\n{said}");
    Ok(())
}
