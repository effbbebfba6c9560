//! What a user does from the shell, on a real cluster.

use std::process::Output;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::program::binary;
use crate::world::World;

/// Runs the program as the administrator.
async fn prewarm(world: &World, arguments: &[&str]) -> anyhow::Result<(String, String, Option<i32>)> {
    let mut command = Command::new(binary()?);
    command.args(arguments).arg("--kubeconfig").arg(world.cluster.server.kubeconfig());
    let Output { stdout, stderr, status } = command.output().await.context("starting the program")?;
    Ok((String::from_utf8(stdout)?, String::from_utf8(stderr)?, status.code()))
}

pub async fn a_person_pulls_waits_and_learns_why_an_image_is_missing() -> anyhow::Result<()> {
    let world = World::shared().await?;
    let (image, namespace) =
        (world.publish("from-the-shell").await?, world.cluster.server.namespace().await?);
    let nodes: Vec<&str> = world.nodes.iter().map(prewarm_testkit::Node::name).collect();
    let nodes = nodes.join(",");
    let wait = ["--node", &nodes, "-n", &namespace, "--wait", "--timeout", "3m"];

    let (stdout, stderr, code) =
        prewarm(world, &[&["pull", &image, "--name", "good"], &wait[..]].concat()).await?;
    ensure!(code == Some(0), "{stdout}{stderr}");
    ensure!(stdout.ends_with(&format!("{image} is on {} nodes\n", world.nodes.len())), "{stdout}");

    let wrong = image.replace(":v1", ":v0");
    let (stdout, stderr, code) =
        prewarm(world, &[&["pull", &image, &wrong, "--name", "bad"], &wait[..]].concat()).await?;
    ensure!(code == Some(1) && stdout.matches("NotFound").count() == world.nodes.len(), "{stdout}{stderr}");

    let (stdout, _, code) = prewarm(world, &["explain", "bad", "-n", &namespace]).await?;
    ensure!(
        code == Some(1) && stdout.matches("the image has been present since").count() == world.nodes.len(),
        "{stdout}"
    );
    ensure!(stdout.matches("NotFound: cannot pull").count() == world.nodes.len(), "{stdout}");
    let (stdout, _, _) = prewarm(world, &["images", &image]).await?;
    ensure!(stdout.lines().count() == 2 && stdout.contains(&image), "{stdout}");
    let (stdout, _, _) = prewarm(world, &["nodes", world.nodes[0].name()]).await?;
    ensure!(stdout.contains(&image) && stdout.contains("Succeeded"), "{stdout}");
    Ok(())
}
