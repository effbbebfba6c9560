//! Content of images from the mirrors that a node's containerd is configured with, and never from the registry itself
//! (ofen A11, W19): which mirrors there are ([`hosts`]), how they are asked ([`client`]), and what manifests say
//! ([`content`]). What becomes of the content is the business of whoever asks.

pub mod client;
pub mod content;
pub mod hosts;

pub use client::{Blob, FetchError, Found, Mirrors, Patience, Wanted};
pub use content::{Descriptor, Digest, Document, Image, Index, Platform};
pub use hosts::{Hosts, Settings};
