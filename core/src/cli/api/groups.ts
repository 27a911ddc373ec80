/** Commands that are made from the API: `portico host list`, `portico user update 3 role=viewer`. What they take is in the panel's own OpenAPI document. */
import { type Command, jsonOption } from '../command/command.ts';

interface Group {
    /** The word on the command line. */
    readonly name: string;
    /** The operations' ids begin with it. */
    readonly prefix: string;
    readonly summary: string;
    /** As a person would type it, for the help text. */
    readonly example: string;
}

const groups: readonly Group[] = [
    {
        name: 'host',
        prefix: 'hosts',
        summary: 'List, create, change and remove hosts',
        example: 'portico host create domain=a.example upstream=127.0.0.1:3000'
    },
    {
        name: 'user',
        prefix: 'users',
        summary: 'List, create, change and remove users',
        example: 'portico user update 3 role=viewer'
    },
    {
        name: 'role',
        prefix: 'roles',
        summary: 'List, create, change and remove roles',
        example: `portico role create name=helpers 'permissions=["hosts:read"]'`
    },
    {
        name: 'certificate',
        prefix: 'certificates',
        summary: 'List, upload, renew and remove certificates',
        example: 'portico certificate renew 2'
    },
    {
        name: 'channel',
        prefix: 'channels',
        summary: 'List, create, test and remove notification channels',
        example: 'portico channel test 1'
    },
    {
        name: 'setting',
        prefix: 'settings',
        summary: 'Read and change settings',
        example: 'portico setting update audit.retentionDays=90'
    },
    {
        name: 'engine',
        prefix: 'proxyengine',
        summary: 'See and steer the proxy engine: status, drift, revisions, restore',
        example: 'portico engine restore 41'
    }
];

/** One command for each group. */
export const apiCommands: readonly Command[] = groups.map(({ name, prefix, summary, example }) => ({
    name,
    positionals: ['[action]', '[id|field=value…]'],
    summary,
    details: [
        `Without an action, the actions are listed with what they take. They are those of the panel's API, so a panel must run. For example: ${example}`,
        'A value that is neither a text nor a number is JSON. --input gives fields that must not stand on the command line, such as passwords.'
    ],
    options: {
        input: {
            type: 'string',
            value: 'file',
            description: 'Take the fields from a file with a JSON object; - for standard input'
        },
        ...jsonOption
    },
    async run(input) {
        const { runAction } = await import('./run-action.ts');
        return runAction(prefix, name, input);
    }
}));
