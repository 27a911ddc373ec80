/** Credentials in headers that stay on a host while the place that they are sent to changes. */
import type { Site } from '../../../engine/site.ts';
import type { Call } from '../../../platform/call.ts';
import type { Invalid } from '../../../platform/errors.ts';
import { valuesOf } from '../../../platform/header-secrets.ts';
import { operationsOf } from '../input/hidden.ts';
import type { HostChange } from '../schema/bodies.ts';
import { dialled } from './safety.ts';

/**
 * An actor who may change a host must not learn a credential by having it sent to a server of theirs. What an actor with `hosts:unsafe` could
 * read anyway, and what a plugin does with its own hosts, is not held against this.
 */
export function checkKeptCredentials(
    { actor }: Call,
    sent: HostChange,
    before: Site | null,
    after: Site
): readonly Invalid[] {
    if (before === null || actor.kind === 'plugin' || actor.can('hosts:unsafe')) {
        return [];
    }
    const known = valuesOf(before.headers.request);
    const given = valuesOf(operationsOf(sent));
    const isKept = [...valuesOf(after.headers.request)].some(
        ([key, value]) => known.get(key) === value && (given.get(key) ?? '') === ''
    );
    const targets = (site: Site): string[] => dialled(site).map(({ address }) => address.text);
    const present = new Set(targets(before));
    return isKept && targets(after).some((address) => !present.has(address))
        ? [
              {
                  path: 'headers.request',
                  message:
                      'headers.request: values that are credentials are to be sent again: they would go to another server'
              }
          ]
        : [];
}
