//! The tree has what the types give.

#[test]
fn generated_files_are_up_to_date() -> anyhow::Result<()> {
    prewarm_generate::check(prewarm_generate::root())
}
