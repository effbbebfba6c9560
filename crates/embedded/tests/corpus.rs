//! The corpus of admission cases, judged by the embedded server through the same questions as the real one.

#[path = "../../api/tests/real_admission/judge.rs"]
#[allow(dead_code, reason = "some questions are asked of the real server only")]
mod judge;

use std::sync::Arc;

use judge::Judge;
use prewarm_embedded::{Options, Server, TokioClock};

#[tokio::test]
async fn every_object_of_the_corpus_gets_its_verdict_from_the_embedded_server() {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    let judge = Judge::through(server.client(), "default".to_owned());
    let cases = prewarm_corpus::load().expect("the corpus is there");
    let mut wrong = Vec::new();
    for case in &cases {
        let answer = judge.ask(case).await.unwrap_or_else(|error| panic!("{}: {error:#}", case.title()));
        // Where the rules of the definitions cannot express everything that ours do, the embedded server still enforces
        // everything.
        if !judge::agrees(&case.verdict, &answer) {
            let wanted = &case.verdict;
            wrong.push(format!("{}\n    wanted {wanted:?}\n    said {answer}", case.title()));
        }
    }
    println!("\ncounted: {} corpus objects judged by the embedded server", cases.len());
    for (case, difference) in cases.iter().filter_map(|case| Some((case, case.difference.as_ref()?))) {
        println!("the real server may differ: {}: {}", case.title(), difference.because);
    }
    assert!(cases.len() > 100, "only {} cases were found", cases.len());
    assert!(wrong.is_empty(), "{} of {} verdicts are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
