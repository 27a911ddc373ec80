/** What the hooks of plugins do not see of a body: passwords, and headers' values that are credentials. */
import { valuesOf, withoutValues, withValues } from '../../../platform/header-secrets.ts';
import type { HostChange } from '../schema/bodies.ts';

/** The body as plugins see it, and how a body that they return gets back what was hidden. */
export function hideSecrets(sent: HostChange): {
    readonly shown: HostChange;
    restore(returned: HostChange): HostChange;
} {
    const passwords = new Map(
        sent.access?.basicAuth?.flatMap(({ username, password }) =>
            username === undefined || password === undefined ? [] : [[username, password] as const]
        )
    );
    const operations = operationsOf(sent);
    const credentials = valuesOf(operations);
    return {
        shown: {
            ...sent,
            ...(passwords.size > 0 && {
                access: {
                    ...sent.access,
                    basicAuth: sent.access?.basicAuth?.map(({ username }) => ({ username }))
                }
            }),
            ...(credentials.size > 0 && { headers: { ...sent.headers, request: withoutValues(operations) } })
        },
        restore(returned) {
            const { access, headers } = returned;
            return {
                ...returned,
                ...(access?.basicAuth !== undefined && {
                    access: {
                        ...access,
                        basicAuth: access.basicAuth.map((entry) => ({
                            ...entry,
                            password: entry.password ?? passwords.get(entry.username ?? '')
                        }))
                    }
                }),
                ...(headers?.request !== undefined && {
                    headers: { ...headers, request: withValues(operationsOf(returned), credentials) }
                })
            };
        }
    };
}

/** The operations on requests that a body has, as the panel reads them. */
export function operationsOf({
    headers
}: HostChange): { readonly op: 'set' | 'add' | 'delete'; readonly name: string; readonly value: string }[] {
    return (headers?.request ?? []).map(({ op = 'set', name = '', value = '' }) => ({ op, name, value }));
}
