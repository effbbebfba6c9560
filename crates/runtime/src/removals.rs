//! Notifies callers when an image was deleted on the node.

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::progress::named;
use crate::proto::events::SubscribeRequest;
use crate::proto::events::events_client::EventsClient;
use crate::runtime::{Kind, Runtime};

/// The events that containerd has to send.
const DELETED: &str = r#"topic=="/images/delete""#;

impl Runtime {
    /// One item per image name that containerd deletes. The stream ends when the connection does; what was deleted
    /// before it was established or after its end has to be found by listing. On other runtimes it never yields.
    pub fn removals(&self) -> BoxStream<'static, ()> {
        if self.kind() != Kind::Containerd {
            return stream::pending().boxed();
        }
        let mut client = EventsClient::new(self.channel.clone());
        let subscription = async move {
            // containerd answers only with the first event, so nothing may wait for this.
            client.subscribe(named(SubscribeRequest { filters: vec![DELETED.into()] })).await
        };
        stream::once(subscription)
            .map_ok(tonic::Response::into_inner)
            .try_flatten()
            .take_while(|event| std::future::ready(event.is_ok()))
            .map(drop)
            .boxed()
    }
}
