//! Which API an object of a kind is reached by.

/// Calls something generic with the `Api` of a kind that the kernel writes or reads; `else` is for kinds that only watches
/// know. A macro, because each kind has another type.
macro_rules! with_api {
    ($client:expr, $kind:expr, $namespace:expr, $api:ident => $call:expr, else $other:expr) => {{
        use k8s_openapi::api::core::v1::Secret;
        use prewarm_api::kruise::{AdvancedCronJob, BroadcastJob, ImageListPullJob, ImagePullJob, NodeImage};
        use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
        use prewarm_plan::cluster::Kind;

        use $crate::apply::api::reach;
        use $crate::watch::{BroadcastPod, SlimJob};

        match $kind {
            Kind::NodeImage => reach!($api = kube::Api::<NodeImage>::all($client), $call),
            Kind::ImagePullJob => {
                reach!($api = kube::Api::<ImagePullJob>::namespaced($client, $namespace), $call)
            }
            Kind::ImageListPullJob => {
                reach!($api = kube::Api::<ImageListPullJob>::namespaced($client, $namespace), $call)
            }
            Kind::Secret => reach!($api = kube::Api::<Secret>::namespaced($client, $namespace), $call),
            Kind::BroadcastJob => {
                reach!($api = kube::Api::<BroadcastJob>::namespaced($client, $namespace), $call)
            }
            Kind::BroadcastPod => {
                reach!($api = kube::Api::<BroadcastPod>::namespaced($client, $namespace), $call)
            }
            Kind::AdvancedCronJob => {
                reach!($api = kube::Api::<AdvancedCronJob>::namespaced($client, $namespace), $call)
            }
            Kind::ImagePrefetch => {
                reach!($api = kube::Api::<ImagePrefetch>::namespaced($client, $namespace), $call)
            }
            Kind::NodeImageSet => reach!($api = kube::Api::<NodeImageSet>::all($client), $call),
            Kind::Job => reach!($api = kube::Api::<SlimJob>::namespaced($client, $namespace), $call),
            Kind::Node | Kind::Pod | Kind::ConfigMap => $other,
        }
    }};
}

/// Calls something with an `Api` of this name.
macro_rules! reach {
    ($api:ident = $made:expr, $call:expr) => {{
        let $api = $made;
        $call
    }};
}

pub(super) use {reach, with_api};
