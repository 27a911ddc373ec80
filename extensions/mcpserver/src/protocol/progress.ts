/** Notifications of progress, for clients that asked for them. */
import type { ServerContext } from '@modelcontextprotocol/server';

/** How much the number grows where nothing else does. */
const step = 1e-6;

/** What tells a client how a call goes. The numbers only grow: each sign of life is one, and a fraction is a part of the next. */
export function progressOf(
    request: ServerContext['mcpReq']
): (text: string, fraction?: number | null) => void {
    const token = request._meta?.progressToken;
    let signs = 0;
    let last = -1;
    return (message, fraction = null) => {
        if (token === undefined || request.signal.aborted) {
            return;
        }
        if (fraction === null) {
            signs = Math.floor(Math.max(signs, last)) + 1;
        }
        const reached = fraction === null ? signs : signs + Math.min(1, Math.max(0, fraction)) * 0.999;
        // A line of a log says something new though the fraction is the same.
        const progress = Math.max(reached, last + step);
        last = progress;
        request
            .notify({
                method: 'notifications/progress',
                params: {
                    progressToken: token,
                    progress,
                    ...(fraction === null ? {} : { total: signs + 1 }),
                    message: message.slice(0, 1_000)
                }
            })
            .catch(() => undefined); // the client left: the call hears of that by its signal
    };
}
