//! The client of container runtimes: CRI v1, and what containerd offers besides.
