//! Time that stands still while anybody computes.

use std::pin::Pin;

use tokio::runtime::Builder;

/// Plays to the end on paused time, in this thread. Nothing but time is there: no sockets, and no other threads.
pub fn on_paused_time<T>(play: impl Future<Output = T>) -> T {
    let mut end = None;
    drive(Box::pin(async { end = Some(play.await) }));
    end.expect("the play is over")
}

/// Not generic, so that it is compiled here, where code is optimized.
fn drive(play: Pin<Box<dyn Future<Output = ()> + '_>>) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without sockets needs nothing").block_on(play);
}
