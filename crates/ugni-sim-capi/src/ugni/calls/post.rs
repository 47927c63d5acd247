//! Posts, and what comes of them.

use gasworks_gni_sys::*;
use gasworks_ugni_sim::entry::Status;
use gasworks_ugni_sim::post::Way;

use crate::ugni::object::{End, QUEUES, Queue};
use crate::ugni::raw::{Answer, Known, Out, Posted};

fn post(end: &End, posted: &Posted, way: Way) -> Answer {
    let descriptor = posted.read();
    let source = match descriptor.src_cq_hndl.is_null() {
        true => None,
        false => Some(QUEUES.get(descriptor.src_cq_hndl.addr()).ok_or(GNI_RC_INVALID_PARAM)?),
    };
    end.endpoint.post(&descriptor, way, posted.token(), source.as_ref().map(|queue| &queue.cq))
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
