/** The same answers in this thread and in another: so the admin's choice of where a plugin runs changes nothing. */
import type { PluginDefinition } from '@portico/sdk';

import { createTestHost } from '../panel/host.ts';
import type { Boundary, TestHostOptions } from '../panel/options.ts';
import { createWorkerRuntime } from '../panel/runtime.ts';
import { errorOf, type Finding, warningOf } from './finding.ts';
import { askAll, type ConformanceRequest } from './requests.ts';

/** @param folder - real path of the package */
export async function checkThreads(
    definition: PluginDefinition,
    folder: string,
    options: TestHostOptions,
    requests: readonly ConformanceRequest[]
): Promise<readonly Finding[]> {
    if (requests.length === 0) {
        const mend = 'Name requests in conformance.json: { "requests": [{ "path": "/things/1" }] }';
        return [warningOf('threads', 'routes', 'No route can be asked without a parameter', mend)];
    }
    const inWorker: Boundary = (plugin) => createWorkerRuntime({ ...plugin, folder });
    const answers: (readonly string[])[] = [];
    for (const boundary of ['none', 'none', inWorker] as const) {
        const host = await createTestHost(definition, { ...options, boundary });
        try {
            answers.push(await askAll(host, requests));
        } finally {
            await host.stop();
            await host.close();
        }
    }
    const [first = [], second = [], there = []] = answers;
    return requests.flatMap(({ method = 'GET', path }, index) => {
        // What differs from call to call in one thread says nothing of threads.
        const isSteady = first[index] === second[index];
        return !isSteady || first[index] === there[index]
            ? []
            : [
                  errorOf(
                      'threads',
                      `${method} ${path}`,
                      `In a thread of its own it answers ${short(there[index])}, else ${short(first[index])}`,
                      'Keep no state in the module that the context does not bring, and let nothing cross but plain data'
                  )
              ];
    });
}

function short(text = 'nothing'): string {
    return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
