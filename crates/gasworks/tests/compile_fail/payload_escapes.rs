//! A payload does not outlive its handler.
use gasworks::{Error, Payload, Request, Seq, Table};
use std::cell::RefCell;

fn register(table: &mut Table<Seq>) -> Result<(), Error> {
    let kept: &'static RefCell<Vec<Payload<'static>>> = Box::leak(Box::default());
    table.medium_request("keeps", move |_: Request<'_, Seq>, _: u32, payload: Payload<'_>| {
        kept.borrow_mut().push(payload);
    })?;
    Ok(())
}

fn main() {}
