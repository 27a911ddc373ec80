/** A ticket stands in the query of an address only until the gateway has seen it: from then on it rides beside the request, where nothing logs it. */
import type { IncomingMessage } from 'node:http';

const tickets = new WeakMap<IncomingMessage, string>();

/** Takes `ticket=…` out of the request's address. */
export function liftTicket(request: IncomingMessage): void {
    const url = request.url ?? '';
    const found = /[?&]ticket=([^&#]*)/.exec(url);
    if (found === null) {
        return;
    }
    tickets.set(request, found[1] ?? '');
    const rest = url.replace(/([?&])ticket=[^&#]*(&?)/g, (_all, before: string, after: string) => (after === '' ? '' : before));
    request.url = rest;
}

/** The ticket that came with a request; null without one. */
export function ticketOf(request: IncomingMessage): string | null {
    return tickets.get(request) ?? null;
}
