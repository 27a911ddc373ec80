/** How each kind of route becomes a hapi route: how the body arrives, the time limit, and what turns the handler's answer into a response. */
import type { Lifecycle, Request, ResponseObject, ResponseToolkit, RouteOptions } from '@hapi/hapi';

import { fail } from '../../../platform/errors.ts';
import type { HttpPorts } from '../ports.ts';
import type { HttpCall } from '../request/http-call.ts';
import type { RequestState } from '../request/state.ts';
import type { Route } from '../route.ts';
import { answerDownload } from './download.ts';
import { answerJson } from './json.ts';
import { answerHttp } from './raw.ts';
import { approveUpgrade } from './socket.ts';
import { answerStream } from './stream.ts';
import { answerUpload } from './upload.ts';

/** Turns a call into a response; everything before it (identity, access, body size) has happened. */
export type Answerer<R extends Route = Route> = (
    route: R,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
) => Promise<Lifecycle.ReturnValue>;

const mebibyte = 1024 * 1024;
const bodyTimeoutMs = 30_000;

type Options = Pick<RouteOptions, 'payload' | 'timeout' | 'handler' | 'response'>;

function options<R extends Route>(
    route: R,
    ports: HttpPorts,
    answer: Answerer<R>,
    body: 'none' | 'data' | 'stream',
    seconds: number | null
): Options {
    const maxBytes = Math.max(route.maxBytes ?? mebibyte, route.bytes?.maxBytes ?? 0);
    return {
        handler: (request, h) => {
            const { call, upgrading, excerpt } = request.app as RequestState;
            if (upgrading === true && route.kind !== 'socket') {
                throw fail.NOT_FOUND(null, { message: 'There is no WebSocket of that name here' });
            }
            const answered = answer(route, call as HttpCall, request, h, ports);
            // Each kind answers by a response of this toolkit.
            return excerpt === undefined
                ? answered
                : answered.then((response) => excerpt.of(response as ResponseObject, request, h));
        },
        timeout: { server: seconds === null ? false : seconds * 1000 },
        ...(body === 'none'
            ? {}
            : {
                  payload:
                      body === 'data'
                          ? {
                                parse: false,
                                output: 'data',
                                maxBytes,
                                timeout:
                                    route.bytes === undefined
                                        ? Math.min(bodyTimeoutMs, (seconds ?? 30) * 1000 - 1)
                                        : false
                            }
                          : // Counted by the route itself: hapi reads what is too long to its end before it refuses it.
                            {
                                parse: false,
                                output: 'stream',
                                maxBytes: Number.MAX_SAFE_INTEGER,
                                timeout: false
                            }
              })
    };
}

/** The hapi options of a route, by its kind. */
export const routeKinds: {
    readonly [K in Route['kind']]: (
        route: Extract<Route, { kind: K }>,
        ports: HttpPorts,
        method: string
    ) => Options;
} = {
    json: (route, ports) =>
        options(
            route,
            ports,
            answerJson,
            route.method === 'GET' ? 'none' : 'data',
            route.timeoutSeconds ?? 30
        ),
    stream: (route, ports) =>
        options(route, ports, answerStream, route.method === 'GET' ? 'none' : 'data', null),
    upload: (route, ports) => options(route, ports, answerUpload, 'stream', route.timeoutSeconds ?? 3600),
    download: (route, ports) => options(route, ports, answerDownload, 'none', null),
    socket: (route, ports) => options(route, ports, approveUpgrade, 'none', 30),
    http: (route, ports, method) =>
        options(route, ports, answerHttp, method === 'GET' ? 'none' : 'stream', route.timeoutSeconds ?? null)
};
