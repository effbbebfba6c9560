//! Programs on a node: their rights, their network, their end.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use prewarm_testkit::{Node, Registry, Runtime, measure, real_tests, wait};

real_tests! {
    a_program_runs_on_the_network_of_its_node,
    a_program_without_privilege_reaches_the_runtime_and_nothing_else,
    a_program_is_measured_and_says_how_it_ended,
}

fn shell(mut command: Command, script: &str) -> Command {
    command.args(["-c", script]);
    command
}

async fn a_program_runs_on_the_network_of_its_node() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let node = Node::start(&registry).await?;
    let program =
        node.run("addresses", shell(node.command(Path::new("/bin/sh")), "ip addr show dev eth0"))?;
    ensure!(program.ended().await?.success(), "{}", program.log_tail());
    ensure!(program.log().contains("inet 10.77.1."), "{}", program.log());
    Ok(())
}

async fn a_program_without_privilege_reaches_the_runtime_and_nothing_else() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    for runtime in Runtime::ALL {
        let node = Node::configure().runtime(runtime).start(&registry).await?;
        let script = format!(
            "id -u; grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs)' /proc/self/status; test -w {0} && echo reached; \
             touch {1}/x || echo refused",
            node.socket().display(),
            node.image_directory().display(),
        );
        let program =
            node.run("stranger", shell(node.command_without_privilege(Path::new("/bin/sh"))?, &script))?;
        program.ended().await?;
        let said = program.log();
        ensure!(
            said.starts_with("65532\n") && said.contains("reached") && said.contains("refused"),
            "{said}"
        );
        ensure!(said.matches("0000000000000000").count() == 3 && said.contains("NoNewPrivs:\t1"), "{said}");
    }
    Ok(())
}

async fn a_program_is_measured_and_says_how_it_ended() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let node = Node::start(&registry).await?;
    let script = "trap 'exit 3' TERM; echo begun; while :; do sleep 0.02; done";
    let program = node.run("worker", shell(node.command(Path::new("/bin/sh")), script))?;
    wait::until("its first word", async || Ok(program.log().contains("begun").then_some(()))).await?;
    let id = program.id().context("it runs")?;
    ensure!(
        measure::peak_resident_mib(id)? >= measure::resident_mib(id)? && measure::resident_mib(id)? > 0.1
    );
    program.terminate()?;
    ensure!(program.ended().await?.code() == Some(3));
    ensure!(program.ended().await.is_err() && program.terminate().is_err(), "it has ended already");
    Ok(())
}
