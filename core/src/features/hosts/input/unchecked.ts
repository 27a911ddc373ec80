/** Bodies of hosts that no route has checked: those that plugins send through their context. */
import { faultsOf } from '../../../platform/validation.ts';
import { refuse } from '../rules/refusals.ts';
import { type HostChange, hostCreate, hostUpdate } from '../schema/bodies.ts';

/** Holds a body against the schema of POST or PUT. @throws VALIDATION_FAILED 40001 */
export function checkedBody(method: 'POST' | 'PUT', body: Readonly<Record<string, unknown>>): HostChange {
    refuse(faultsOf(method === 'POST' ? hostCreate : hostUpdate, body));
    return body as HostChange; // the schema has just said so
}
