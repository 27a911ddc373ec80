/** `GET /api/plugins/{name}/logs`. */
import { joi } from '@portico/sdk';

import { type Route, stream } from '../../../server/http/route.ts';
import { pluginParams } from '../routes/schema.ts';
import type { PluginService } from '../routes/service.ts';
import { logLevels, type PluginLogs } from './plugin-logs.ts';

const query = joi.object({
    lines: joi
        .number()
        .integer()
        .min(0)
        .max(1_000)
        .default(100)
        .description('How many kept lines come first'),
    level: joi
        .string()
        .valid(...logLevels)
        .default('debug')
        .description('No less serious lines than these'),
    follow: joi
        .string()
        .valid('true', 'false')
        .description('`false`: the stream ends after the lines that are kept')
});

const line = joi.object({
    at: joi.string().isoDate().required(),
    level: joi
        .string()
        .valid(...logLevels)
        .required(),
    message: joi.string().allow('').required(),
    fields: joi.record(joi.any()).required().description('What else the line says')
});

/** The route of a plugin's log. */
export function pluginLogRoute(plugins: PluginService, logs: PluginLogs): Route {
    return stream({
        path: '/api/plugins/{name}/logs',
        id: 'plugins.logs',
        fails: ['PLUGIN_NOT_FOUND'],
        access: 'plugins:manage',
        summary: "Follow a plugin's lines in the panel's log",
        description:
            'What the plugin logs, and what the panel logs of it, also while it is disabled or has failed. At most 1,000 lines are kept, since the start of the panel; `Last-Event-ID` goes on after that line. Less serious lines than `PORTICO_LOG_LEVEL` are not written at all.',
        validate: { params: pluginParams, query },
        events: { message: line },
        ui: { role: 'log' },
        async handler({ params, query: { lines, level, follow }, lastEventId, signal }) {
            await plugins.requireKnown(params.name);
            const after = /^\d{1,16}$/.test(lastEventId ?? '') ? Number(lastEventId) : null;
            return events(
                logs.read(params.name, { lines, level, follow: follow !== 'false', after, signal })
            );
        }
    });
}

async function* events(lines: ReturnType<PluginLogs['read']>) {
    for await (const { number, ...data } of lines) {
        yield { id: String(number), data };
    }
}
