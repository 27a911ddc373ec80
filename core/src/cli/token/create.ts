/** `portico token create`: an API token for a program, without a login. */
import type { ApiTokenView } from '../../features/auth/tokens/api-tokens.ts';
import { type Command, jsonOption } from '../command/command.ts';
import { Complaint, misuse, Refusal } from '../command/command-error.ts';
import { findUser } from '../panel/find-user.ts';
import { reach } from '../panel/with-panel.ts';

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

export const tokenCreate: Command = {
    name: 'token create',
    positionals: [],
    summary: 'Create an API token for a user',
    details: [
        'The token, and nothing else, is written to standard output, this once. It can never do more than its owner can at that moment.'
    ],
    options: {
        user: { type: 'string', value: 'name', description: 'Whose token it is' },
        name: {
            type: 'string',
            value: 'name',
            description: "What it is for; each of a user's tokens has another name"
        },
        permissions: {
            type: 'string',
            value: 'list',
            description: 'What it may, separated by commas, as hosts:read,hosts:write'
        },
        expires: {
            type: 'string',
            value: 'when',
            description:
                'In days or hours from now, as 90d or 12h, or a time as 2030-01-31T00:00:00Z; a year from now without it'
        },
        ...jsonOption
    },
    async run({ config, output, required, text }) {
        const username = required('user');
        const name = required('name');
        if (name.length > longestName) {
            throw misuse(`--name is longer than ${longestName} characters`);
        }
        const permissions = permissionsOf(required('permissions'));
        const expires = text('expires');
        const input = {
            name,
            permissions,
            expiresAt: expires === undefined ? null : timeOf(expires, Date.now())
        };
        const { created, owner } = await reach<{ readonly created: Created; readonly owner: Owner }>(config, {
            async online(client) {
                const owner = await findUser(client, username);
                return {
                    owner,
                    created: (
                        await client.call<Created>('POST', '/api/auth/console/tokens', { ...input, username })
                    ).data
                };
            },
            async offline(offline) {
                const owner = offline.accounts.named(username);
                if (owner === undefined) {
                    throw new Complaint(`There is no user ${username}`);
                }
                return {
                    owner,
                    created: (await offline.auth.createToken(offline.call(), username, input)).data
                };
            }
        }).catch((error: unknown) => {
            throw worded(error, username, name);
        });
        output.say(`The token "${name}" of ${username}, shown this once; it ends at ${created.expiresAt}.`);
        if (owner.disabled || owner.mustChangePassword) {
            output.say(
                `It is refused until ${owner.username} ${owner.disabled ? 'is enabled' : 'has changed the password'}.`
            );
        }
        output.result(created, created.token);
        return 0;
    }
};

function permissionsOf(list: string): string[] {
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
        throw misuse(
            `--permissions: ${wrong === undefined ? 'there is none' : `${JSON.stringify(wrong)} is not of the form area:verb, as hosts:read`}`
        );
    }
    return permissions;
}

/** @throws Complaint of misuse for what is no time to come */
export function timeOf(text: string, now: number): string {
    const [, count = '', unit = ''] = /^(\d{1,6})([hd])$/.exec(text) ?? [];
    const at =
        unit === ''
            ? /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
                ? Date.parse(text)
                : NaN
            : now + Number(count) * (units[unit] ?? NaN);
    if (Number.isNaN(at) || new Date(at).getUTCFullYear() > 9999) {
        throw misuse(
            `--expires: ${JSON.stringify(text)} is not a time: say 90d, 12h or 2030-01-31T00:00:00Z`
        );
    }
    if (at <= now) {
        throw misuse('--expires is not a time to come');
    }
    return new Date(at).toISOString();
}

function worded(error: unknown, username: string, name: string): unknown {
    if (!(error instanceof Refusal)) {
        return error;
    }
    if (error.reason === 'FORBIDDEN') {
        return new Complaint(
            `${username} does not have the permission ${String(error.data['permission'])}, so that no token of ${username} can have it`
        );
    }
    return error.reason === 'CONFLICT'
        ? new Complaint(`${username} has a token of the name "${name}" already`)
        : error;
}
