/** Calls of the service of hosts, as its tests make them. */
import { expect } from '@hapi/code';
import { type FailureError, isFailure } from '@portico/sdk';

import type { HostChange } from '../../../core/src/features/hosts/schema/bodies.ts';
import type { HostView } from '../../../core/src/features/hosts/schema/view.ts';
import type { Call } from '../../../core/src/platform/call.ts';
import { adminMay, type HostKit, operatorMay } from './hosts.ts';
import { callOf, person } from './store.ts';

const as = (may: readonly string[], more: Partial<Call> = {}) => callOf(person('somebody', may), more);
export const admin = (more: Partial<Call> = {}) => as(adminMay, more);
export const operator = (more: Partial<Call> = {}) => as(operatorMay, more);

export async function refused(work: Promise<unknown>): Promise<FailureError> {
    const thrown: unknown = await work.then(
        () => 'nothing was thrown',
        (error: unknown) => error
    );
    if (!isFailure(thrown)) {
        throw new Error('not refused by a failure', { cause: thrown });
    }
    return thrown;
}

/** Paths of every fault of a 40001. */
export async function faults(work: Promise<unknown>): Promise<readonly string[]> {
    const failure = await refused(work);
    expect(failure.reason, failure.message).to.equal('VALIDATION_FAILED');
    return (failure.data?.['errors'] as { path: string }[]).map(({ path }) => path);
}

export const proxy = (domain: string, more: HostChange = {}): HostChange => ({
    domain,
    upstream: '10.0.0.1:8080',
    ...more
});

/** The hosts that the list shows. */
export const listedIn = (kit: HostKit, query: Parameters<HostKit['hosts']['page']>[0]): HostView[] =>
    JSON.parse(kit.hosts.page(query).json()) as HostView[];

/** The rows of all hosts, as they are stored. */
export const rowsIn = (kit: HostKit): unknown[] =>
    kit.store.db.prepare('select id, version, applied, document, site from host').all();
