/** A ticket stands in the query of an address only until the gateway has seen it: from then on it rides beside the request, where nothing logs it. */
import type { IncomingMessage } from 'node:http';

const mark = 'ticket=';
const tickets = new WeakMap<IncomingMessage, string>();

/** Takes every `ticket=…` out of the request's address; the first one counts. */
export function liftTicket(request: IncomingMessage): void {
    const url = request.url ?? '';
    const at = url.indexOf('?');
    if (at < 0 || !url.includes('ticket=', at)) {
        return;
    }
    const isTicket = (part: string): boolean => part.startsWith(mark);
    const parts = url.slice(at + 1).split('&');
    const ticket = parts.find(isTicket);
    if (ticket === undefined) {
        return;
    }
    tickets.set(request, ticket.slice(mark.length));
    const rest = parts.filter((part) => !isTicket(part)).join('&');
    request.url = `${url.slice(0, at)}${rest === '' ? '' : `?${rest}`}`;
}

/** The ticket that came with a request; null without one. */
export function ticketOf(request: IncomingMessage): string | null {
    return tickets.get(request) ?? null;
}
