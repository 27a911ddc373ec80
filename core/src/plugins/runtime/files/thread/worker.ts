/** The thread in which many small files are worked on. It loads nothing but this folder, names of files, and Node's own modules. */
import { parentPort } from 'node:worker_threads';

import { perform, type Request } from './operations.ts';

parentPort?.on('message', (request: Request) => {
    const reply = perform(request);
    parentPort?.postMessage(reply, [reply.bytes]);
});
