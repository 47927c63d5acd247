//! A request is replied to at most once.
use gasworks::{Error, Request, Seq, ShortReply, Table};

fn register(table: &mut Table<Seq>, done: ShortReply<u32>) -> Result<(), Error> {
    table.short_request("twice", move |request: Request<'_, Seq>, x: u32| {
        request.reply_short(done, x)?;
        request.reply_short(done, x)
    })?;
    Ok(())
}

fn main() {}
