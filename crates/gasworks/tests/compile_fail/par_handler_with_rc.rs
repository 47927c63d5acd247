//! In Par any thread may run a handler, so its state must be shareable.
use gasworks::{Error, Par, Request, Table};
use std::{cell::Cell, rc::Rc};

fn register(table: &mut Table<Par>) -> Result<(), Error> {
    let count = Rc::new(Cell::new(0));
    table.short_request("counts", move |_: Request<'_, Par>, x: u32| count.set(x))?;
    Ok(())
}

fn main() {}
