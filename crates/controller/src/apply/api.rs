//! Which API an object of a kind is reached by.

/// Calls something generic with the `Api` of a kind that the kernel writes or reads; `else` is for kinds that only watches
/// know. A macro, because each kind has another type.
macro_rules! with_api {
    ($client:expr, $kind:expr, $namespace:expr, $api:ident => $call:expr, else $other:expr) => {{
        use k8s_openapi::api::core::v1::Secret;
        use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
        use prewarm_plan::cluster::Kind;

        use $crate::watch::{BroadcastPod, SlimJob};

        let client = $client;
        match $kind {
            Kind::NodeImage => {
                let $api = kube::Api::<NodeImage>::all(client);
                $call
            }
            Kind::ImagePullJob => {
                let $api = kube::Api::<ImagePullJob>::namespaced(client, $namespace);
                $call
            }
            Kind::ImageListPullJob => {
                let $api = kube::Api::<ImageListPullJob>::namespaced(client, $namespace);
                $call
            }
            Kind::Secret => {
                let $api = kube::Api::<Secret>::namespaced(client, $namespace);
                $call
            }
            Kind::BroadcastJob => {
                let $api = kube::Api::<BroadcastJob>::namespaced(client, $namespace);
                $call
            }
            Kind::BroadcastPod => {
                let $api = kube::Api::<BroadcastPod>::namespaced(client, $namespace);
                $call
            }
            Kind::AdvancedCronJob => {
                let $api = kube::Api::<AdvancedCronJob>::namespaced(client, $namespace);
                $call
            }
            Kind::Job => {
                let $api = kube::Api::<SlimJob>::namespaced(client, $namespace);
                $call
            }
            Kind::Node | Kind::Pod => $other,
        }
    }};
}

pub(super) use with_api;
