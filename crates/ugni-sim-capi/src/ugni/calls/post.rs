//! Posts, and what comes of them.

use std::sync::Arc;

use gasworks_gni_sys::*;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::nic::{Link, Part};
use gasworks_ugni_sim::post::Way;

use crate::ugni::object::{End, Queue};
use crate::ugni::raw::{Answer, Known, Out, Own, Posted};
use crate::{trace, witness};

fn post(end: &End, posted: &Posted, way: Way) -> Answer {
    let descriptor = posted.read();
    let source = match descriptor.src_cq_hndl.is_null() {
        true => None,
        false => Some(Queue::find(descriptor.src_cq_hndl)?),
    };
    end.endpoint.post(&descriptor, way, posted.token(), source.as_ref().map(|queue| &queue.cq))?;
    witness::posted(descriptor.r#type, descriptor.length);
    trace::posted(
        &descriptor,
        way,
        posted.token(),
        [(&end.endpoint, descriptor.length, descriptor.cqwrite_value)],
    );
    Ok(())
}

pub(super) fn fma(end: Known<End>, descriptor: Posted) -> Answer {
    post(&end, &descriptor, Way::Fma)
}

pub(super) fn rdma(end: Known<End>, descriptor: Posted) -> Answer {
    post(&end, &descriptor, Way::Bte)
}

pub(super) fn cq_write(end: Known<End>, descriptor: Posted) -> Answer {
    post(&end, &descriptor, Way::CqWrite)
}

fn post_chain(end: &End, posted: &Posted, way: Way) -> Answer {
    let first = posted.read();
    let find = |(handle, part): (gni_ep_handle_t, Part)| match handle.is_null() {
        true => Ok((None, part)),
        false => Ok((Some(End::find(handle)?), part)),
    };
    let links: Vec<(Option<Arc<End>>, Part)> =
        posted.links(&first)?.into_iter().map(find).collect::<Result<_, gni_return_t>>()?;
    let bytes = |part: &Part| match part {
        Part::Put(part) => part.length,
        Part::Get(part) => part.length,
        Part::Atomic(part) => part.length,
        Part::CqWrite(_) => 0,
    };
    let all = links.iter().fold(first.length, |sum, (_, part)| sum.saturating_add(bytes(part)));
    let whole =
        links.iter().map(|(end, part)| Link { endpoint: end.as_ref().map(|end| &end.endpoint), part: *part });
    end.endpoint.post_chain(&first, whole, way, posted.token())?;
    witness::posted(first.r#type, all);
    let value = |part: &Part| if let Part::CqWrite(part) = part { part.cqwrite_value } else { 0 };
    let each =
        links.iter().filter_map(|(end, part)| Some((&end.as_ref()?.endpoint, bytes(part), value(part))));
    let head = (&end.endpoint, first.length, first.cqwrite_value);
    trace::posted(&first, way, posted.token(), std::iter::once(head).chain(each));
    Ok(())
}

pub(super) fn fma_chain(end: Known<End>, descriptor: Posted) -> Answer {
    post_chain(&end, &descriptor, Way::Fma)
}

pub(super) fn cq_write_chain(end: Known<End>, descriptor: Posted) -> Answer {
    post_chain(&end, &descriptor, Way::CqWrite)
}

pub(super) fn completed(queue: Known<Queue>, event: u64, out: Out<*mut gni_post_descriptor_t>) -> Answer {
    match queue.cq.completed(event) {
        Ok((token, status)) => {
            out.set(Posted::of(token).pointer());
            if status == Status::Ok { Ok(()) } else { Err(GNI_RC_TRANSACTION_ERROR) }
        }
        Err(code) => {
            out.set(std::ptr::null_mut());
            Err(code)
        }
    }
}
