//! Headers that come by the endpoint's FIFO.

use super::Endpoint;
use super::traffic::MAX_ANSWERS;
use crate::header::HeaderType;
use crate::link::Link;

impl Endpoint {
    /// Gives each connection what has come for it by the FIFO.
    pub(super) fn read_fifo(&mut self) {
        let Some(fifo) = &mut self.fifo else { return };
        let connections = &self.connections;
        let mut headers = fifo.read(|id| connections.get(id).is_some());
        let mut acknowledged = Vec::new();
        for header in headers.drain(..) {
            let id = header.connection;
            let Some(connection) = self.connections.get_mut(id) else { continue };
            let is_news = match (&mut connection.channel, &mut connection.opening) {
                (Some(link), _) => {
                    let is_news = link.arrive(header);
                    if header.of == HeaderType::SendAck {
                        acknowledged.push(id);
                    }
                    is_news
                }
                (None, Some(opening)) => {
                    // An honest server has not more under way.
                    if opening.early.len() < MAX_ANSWERS {
                        opening.early.push(header);
                    }
                    false
                }
                (None, None) => false,
            };
            if is_news {
                self.traffic.look_at(id, connection);
            }
        }
        fifo.keep(headers);
        // What these peers have sent has come.
        for id in fifo.take_gone() {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            if let Some(Link::Fifo(link)) = &mut connection.channel {
                link.end();
                self.traffic.look_at(id, connection);
            }
        }
        for id in acknowledged {
            self.end_what_was_taken(id);
        }
    }
}
