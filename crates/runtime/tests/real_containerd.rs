//! The contract suite on a real containerd.

#[path = "contract/mod.rs"]
mod contract;
mod real;

use prewarm_testkit::{Runtime, real_tests};

macro_rules! on_containerd {
    ($($module:ident::$case:ident),+ $(,)?) => {
        real_tests! { $($case),+ }

        $(async fn $case() -> anyhow::Result<()> {
            contract::$module::$case(&real::RealWorld::start(Runtime::Containerd).await?).await
        })+
    };
}

contract::cases!(on_containerd);
