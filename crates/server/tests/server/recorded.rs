//! Requests that real clients sent, and what their programs know to be true.
