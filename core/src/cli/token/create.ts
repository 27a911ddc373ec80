/** `portico token create`: creates an API token without a login. */
import type { ApiTokenView } from '../../features/auth/tokens/api-token.ts';
import { type Command, jsonOption } from '../command/command.ts';
import { CommandError, RequestRefused, usageError } from '../command/command-error.ts';
import { findUser } from '../panel/find-user.ts';
import { withPanel } from '../panel/with-panel.ts';

type Created = ApiTokenView & { readonly token: string };

interface Owner {
    readonly username: string;
    readonly disabled: boolean;
    readonly mustChangePassword: boolean;
}

const hourMs = 3600_000;
const units: Readonly<Record<string, number>> = { h: hourMs, d: 24 * hourMs };
const permissionForm = /^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/;
const longestName = 100;

/** The command `token create`. */
export const tokenCreate: Command = {
    name: 'token create',
    positionals: [],
    summary: 'Create an API token for a user',
    details: [
        'Only the token is written to standard output. It is shown only once. It never has a permission that its owner does not have at that moment.'
    ],
    options: {
        user: { type: 'string', value: 'name', description: 'The owner of the token' },
        name: {
            type: 'string',
            value: 'name',
            description: 'What it is for; no two tokens of a user have the same name'
        },
        permissions: {
            type: 'string',
            value: 'list',
            description: 'Its permissions, separated by commas, such as hosts:read,hosts:write'
        },
        expires: {
            type: 'string',
            value: 'when',
            description:
                'When it ends: in days or hours, such as 90d or 12h, or at a time, such as 2030-01-31T00:00:00Z; without it, in a year'
        },
        ...jsonOption
    },
    async run({ config, output, required, text }) {
        const username = required('user');
        const name = required('name');
        if (name.length > longestName) {
            throw usageError(`--name is longer than ${longestName} characters`);
        }
        const permissions = parsePermissions(required('permissions'));
        const expires = text('expires');
        const input = {
            name,
            permissions,
            expiresAt: expires === undefined ? null : parseExpiry(expires, Date.now())
        };
        const { created, owner } = await withPanel<{ readonly created: Created; readonly owner: Owner }>(
            config,
            {
                async online(client) {
                    const owner = await findUser(client, username);
                    return {
                        owner,
                        created: (
                            await client.call<Created>('POST', '/api/auth/console/tokens', {
                                ...input,
                                username
                            })
                        ).data
                    };
                },
                async offline(offline) {
                    const owner = offline.accounts.named(username);
                    if (owner === undefined) {
                        throw new CommandError(`There is no user ${username}`);
                    }
                    return {
                        owner,
                        created: (await offline.auth.createToken(offline.call(), username, input)).data
                    };
                }
            }
        ).catch((error: unknown) => {
            throw explainRefusal(error, username, name);
        });
        output.say(`The token "${name}" of ${username} is shown only once. It ends at ${created.expiresAt}.`);
        if (owner.disabled || owner.mustChangePassword) {
            output.say(
                `It is refused until ${owner.username} ${owner.disabled ? 'is enabled' : 'has changed the password'}.`
            );
        }
        output.result(created, created.token);
        return 0;
    }
};

function parsePermissions(list: string): string[] {
    const permissions = [
        ...new Set(
            list
                .split(',')
                .map((each) => each.trim())
                .filter((each) => each !== '')
        )
    ];
    const wrong = permissions.find((permission) => !permissionForm.test(permission));
    if (wrong !== undefined || permissions.length === 0) {
        throw usageError(
            `--permissions: ${wrong === undefined ? 'the list is empty' : `${JSON.stringify(wrong)} is not of the form area:verb, as hosts:read`}`
        );
    }
    return permissions;
}

/** Reads `--expires`. @returns RFC 3339 @throws CommandError of wrong use for a time that is invalid or past */
export function parseExpiry(text: string, now: number): string {
    const [, count = '', unit = ''] = /^(\d{1,6})([hd])$/.exec(text) ?? [];
    const at =
        unit === ''
            ? /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
                ? Date.parse(text)
                : NaN
            : now + Number(count) * (units[unit] ?? NaN);
    if (Number.isNaN(at) || new Date(at).getUTCFullYear() > 9999) {
        throw usageError(
            `--expires: ${JSON.stringify(text)} is not a time: write 90d, 12h or 2030-01-31T00:00:00Z`
        );
    }
    if (at <= now) {
        throw usageError('--expires must lie in the future');
    }
    return new Date(at).toISOString();
}

function explainRefusal(error: unknown, username: string, name: string): unknown {
    if (!(error instanceof RequestRefused)) {
        return error;
    }
    if (error.reason === 'FORBIDDEN') {
        return new CommandError(
            `${username} does not have the permission ${String(error.data['permission'])}, so no token of ${username} can have it`
        );
    }
    return error.reason === 'CONFLICT'
        ? new CommandError(`${username} already has a token with the name "${name}"`)
        : error;
}
