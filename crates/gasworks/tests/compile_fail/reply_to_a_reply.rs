//! A reply handler does not reply.
use gasworks::{Error, Reply, Seq, ShortReply, Table};

fn register(table: &mut Table<Seq>, done: ShortReply<u32>) -> Result<(), Error> {
    table.short_reply("answers back", move |reply: Reply<'_>, x: u32| reply.reply_short(done, x))?;
    Ok(())
}

fn main() {}
