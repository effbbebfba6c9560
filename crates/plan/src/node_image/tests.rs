//! Decision tables of the pass over a NodeImage.
