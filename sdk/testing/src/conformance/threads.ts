/** The same answers in this thread and in another: so the admin's choice of where a plugin runs changes nothing. */
import { pathToFileURL } from 'node:url';

import type { PluginDefinition } from '@portico/sdk';

import { createTestHost } from '../host.ts';
import type { TestHostOptions } from '../options.ts';
import { createWorkerRuntime } from '../runtime.ts';
import { errorOf, type Finding, warningOf } from './finding.ts';
import { askAll, type ConformanceRequest } from './requests.ts';

/** @param entry - path of the module that exports the definition */
export async function checkThreads(
    definition: PluginDefinition,
    entry: string,
    options: TestHostOptions,
    requests: readonly ConformanceRequest[]
): Promise<readonly Finding[]> {
    if (requests.length === 0) {
        return [
            warningOf(
                'threads',
                'routes',
                'No route could be asked without a parameter, so nothing was compared',
                'Name requests in conformance.json: { "requests": [{ "path": "/things/1" }] }'
            )
        ];
    }
    const answers: (readonly string[])[] = [];
    for (const boundary of ['none', 'none', 'worker'] as const) {
        const host = await createTestHost(definition, {
            ...options,
            quiet: true,
            boundary:
                boundary === 'none'
                    ? 'none'
                    : (plugin) =>
                          createWorkerRuntime({
                              ...plugin,
                              entry: pathToFileURL(entry).href,
                              capabilities: options.grants ?? {}
                          })
        });
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
