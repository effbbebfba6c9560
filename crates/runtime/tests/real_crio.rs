//! The contract suite on a real CRI-O.

#[path = "contract/mod.rs"]
mod contract;
mod real;

use prewarm_testkit::{Runtime, real_tests};

macro_rules! on_crio {
    ($($module:ident::$case:ident),+ $(,)?) => {
        real_tests! { $($case),+ }

        $(async fn $case() -> anyhow::Result<()> {
            contract::$module::$case(&real::RealWorld::start(Runtime::Crio).await?).await
        })+
    };
}

contract::cases!(on_crio);
