//! The messages and clients that `build.rs` makes from the protocol files.

#![allow(clippy::all, clippy::pedantic, missing_docs, reason = "generated code is not ours to format")]

use std::fmt;

pub mod cri {
    tonic::include_proto!("runtime.v1");
}

pub mod services {
    pub mod content {
        pub mod v1 {
            tonic::include_proto!("containerd.services.content.v1");
        }
    }
    pub mod events {
        pub mod v1 {
            tonic::include_proto!("containerd.services.events.v1");
        }
    }
    pub mod images {
        pub mod v1 {
            tonic::include_proto!("containerd.services.images.v1");
        }
    }
    pub mod leases {
        pub mod v1 {
            tonic::include_proto!("containerd.services.leases.v1");
        }
    }
    pub mod streaming {
        pub mod v1 {
            tonic::include_proto!("containerd.services.streaming.v1");
        }
    }
    pub mod transfer {
        pub mod v1 {
            tonic::include_proto!("containerd.services.transfer.v1");
        }
    }
}

pub mod types {
    tonic::include_proto!("containerd.types");
    pub mod transfer {
        tonic::include_proto!("containerd.types.transfer");
    }
}

pub use services::content::v1 as content;
pub use services::events::v1 as events;
pub use services::images::v1 as images;
pub use services::leases::v1 as leases;
pub use services::streaming::v1 as streaming;
pub use services::transfer::v1 as transfer;

/// Shows where the credential belongs and nothing of what it says.
impl fmt::Debug for cri::AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthConfig").field("server_address", &self.server_address).finish_non_exhaustive()
    }
}
