/** The route that says how each client is set up. */
import { joi } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { addressOf } from './status.ts';

const clientSchema = joi.object({
    id: joi.string().required().label('Client'),
    title: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    file: joi
        .string()
        .allow(null)
        .required()
        .label('File')
        .description('Null: a command')
        .meta({ ui: { column: 2 } }),
    format: joi
        .choice({ json: 'JSON', toml: 'TOML', yaml: 'YAML', command: 'Command' })
        .required()
        .label('Format'),
    text: joi.string().required().label('Text').description('${PORTICO_TOKEN} stands for an API token')
});
// The reader's environment replaces it.
const bearer = 'Bearer ${PORTICO_TOKEN}';
const pretty = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

/** Declares the routes below `/clients`. */
export function registerClientRoutes(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/clients',
        id: 'clients',
        access: 'use',
        summary: 'How to set up your client',
        returns: joi.array().items(clientSchema),
        ui: { title: 'Connect', label: 'title', order: 6 },
        description:
            'Clients that speak OAuth need the address alone. Others get an API token with the permission `mcpserver:use` and those that the agent needs; `${PORTICO_TOKEN}` stands for it.',
        handler: async ({ headers }) => clientsFor(await addressOf(ctx, headers['host']))
    });
}

function clientsFor(url: string) {
    const http = { type: 'http', url, headers: { Authorization: bearer } };
    const file = (id: string, title: string, path: string, value: object) => ({
        id,
        title,
        file: path,
        format: 'json' as const,
        text: pretty(value)
    });
    return [
        file('claude-code', 'Claude Code', '.mcp.json', { mcpServers: { portico: http } }),
        file('claude-desktop', 'Claude Desktop', 'claude_desktop_config.json', {
            mcpServers: {
                portico: {
                    command: 'npx',
                    args: ['-y', 'mcp-remote', url, '--header', `Authorization: ${bearer}`]
                }
            }
        }),
        file('cursor', 'Cursor', '.cursor/mcp.json', {
            mcpServers: {
                // Cursor replaces it.
                portico: { url, headers: { Authorization: 'Bearer ${env:PORTICO_TOKEN}' } }
            }
        }),
        file('vscode', 'Visual Studio Code', '.vscode/mcp.json', {
            inputs: [{ type: 'promptString', id: 'portico', description: 'API token', password: true }],
            // The editor replaces it.
            servers: { portico: { type: 'http', url, headers: { Authorization: 'Bearer ${input:portico}' } } }
        }),
        file('gemini', 'Gemini CLI', '.gemini/settings.json', {
            mcpServers: { portico: { httpUrl: url, headers: { Authorization: bearer } } }
        }),
        {
            id: 'codex',
            title: 'Codex CLI',
            file: '.codex/config.toml',
            format: 'toml' as const,
            text: `[mcp_servers.portico]\nurl = "${url}"\nbearer_token_env_var = "PORTICO_TOKEN"\n`
        },
        {
            id: 'claude-code-oauth',
            title: 'Claude Code, by OAuth',
            file: null,
            format: 'command' as const,
            text: `claude mcp add --transport http portico ${url}\n`
        }
    ];
}
