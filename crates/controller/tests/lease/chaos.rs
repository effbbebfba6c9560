//! Random crashes, stops, freezes, deletions and a server on a bad day. No two lead, and when all is well again one does.

use std::time::Duration;

use prewarm_embedded::faults::{FaultPlan, Faults, Rates};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn whatever_happens_no_two_lead_and_somebody_does_in_the_end() {
    for seed in prewarm_seed::several(8) {
        println!("seed {seed}");
        suffer(seed).await;
    }
}

async fn suffer(seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut world = World::new();
    let mut lives = 0;
    let mut all_faults = Vec::new();
    for _ in 0..60 {
        world.candidates.retain(|_, candidate| !candidate.has_ended());
        while world.candidates.len() < 3 {
            lives += 1;
            let rates = Rates { latency: Duration::ZERO..=Duration::from_secs(4), ..Rates::rough() };
            let faults = Faults::new(FaultPlan::always(rates), seed * 1000 + lives);
            world.start_on(&lives.to_string(), &faults);
            all_faults.push(faults);
        }
        world.pass(random.random_range(0.0..25.0)).await;
        let names: Vec<String> = world.candidates.keys().cloned().collect();
        let name = world.leader().unwrap_or_else(|| names[random.random_range(0..names.len())].clone());
        match random.random_range(0..5) {
            0 => world.take(&name).kill().await,
            1 => world.take(&name).stop().await,
            2 => world.candidates[&name].freeze(true),
            3 => names.iter().for_each(|name| world.candidates[name].freeze(false)),
            // It may be deleted already.
            _ => drop(world.api().delete(crate::world::NAME, &kube::api::DeleteParams::default()).await),
        }
    }
    all_faults.iter().for_each(Faults::stop);
    world.candidates.values().for_each(|candidate| candidate.freeze(false));
    // Whoever was thawed with little time left may still lose it.
    world.pass(15.0).await;
    world.start("last");
    let (leader, waited) = world.elect().await;
    assert!(waited < 20.0, "seed {seed}: {waited} s");
    world.pass(100.0).await;
    assert_eq!(world.leader(), Some(leader), "seed {seed}");
}
