//! The store on its own.
