//! Handlers as messages name them: an index, with the type of its arguments.

use bytemuck::Pod;
use std::marker::PhantomData;

/// What travels as a message's arguments: any plain type whose size is a multiple of 4 and at most 64 bytes. Another
/// size does not compile.
pub trait Args: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> Args for T {}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name<A> {
            index: u8,
            of: PhantomData<fn(A)>,
        }
        impl<A> Clone for $name<A> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<A> Copy for $name<A> {}
        impl<A> $name<A> {
            /// The handler's index in the table.
            pub fn index(self) -> u8 {
                self.index
            }
            pub(crate) fn new(index: u8) -> Self {
                Self { index, of: PhantomData }
            }
        }
    )*};
}

handles! {
    /// A handler of Short requests with arguments `A`.
    ShortRequest;
    /// A handler of Medium requests with arguments `A`.
    MediumRequest;
    /// A handler of Long requests with arguments `A`.
    LongRequest;
    /// A handler of Short replies with arguments `A`.
    ShortReply;
    /// A handler of Medium replies with arguments `A`.
    MediumReply;
    /// A handler of Long replies with arguments `A`.
    LongReply;
}
