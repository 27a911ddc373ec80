/** Problems of the panel around this plugin, as far as the caller may see them. */
import type { Actor } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { Finding } from './finding.ts';

/** Where a question to the panel goes, and on whose behalf. */
export interface PanelQuestion {
    readonly ctx: Ctx;
    readonly actor: Actor;
    readonly signal: AbortSignal;
}

interface PluginRecord {
    readonly name?: unknown;
    readonly state?: unknown;
    readonly failure?: { readonly message?: unknown } | null;
    readonly health?: { readonly checks?: unknown } | null;
}
interface Check {
    readonly name?: unknown;
    readonly state?: unknown;
    readonly evidence?: unknown;
    readonly remedy?: { readonly text?: unknown; readonly command?: unknown } | null;
}

/** Finds plugins that failed and checks of plugins that are not `ok`; null when the panel does not say. */
export async function findPluginProblems(question: PanelQuestion): Promise<Finding[] | null> {
    const rows = await askPanel(question, 'plugins.list');
    return Array.isArray(rows)
        ? (rows as readonly PluginRecord[])
              .filter(({ name }) => name !== question.ctx.name)
              .flatMap(judgePlugin)
        : null;
}

function judgePlugin({ name, state, failure, health }: PluginRecord): Finding[] {
    const subject = String(name);
    if (state === 'failed' || state === 'quarantined') {
        const message = typeof failure?.message === 'string' ? failure.message : `Its state is ${state}`;
        return [{ kind: 'plugin', severity: 'critical', subject, message, since: null, remedy: null }];
    }
    const checks: unknown = health?.checks;
    return (Array.isArray(checks) ? (checks as readonly Check[]) : [])
        .filter((check) => check.state === 'failed' || check.state === 'degraded')
        .map((check) => ({
            kind: 'plugin',
            severity: check.state === 'failed' ? 'critical' : 'warning',
            subject,
            message: `${String(check.name)}: ${typeof check.evidence === 'string' ? check.evidence : String(check.state)}`,
            since: null,
            remedy: remedyOf(check)
        }));
}

function remedyOf({ remedy }: Check): string | null {
    const texts = [remedy?.text, remedy?.command].filter((each) => typeof each === 'string');
    return texts.length === 0 ? null : texts.join(': ');
}

/** Finds a proxy engine that does not run; null when the panel does not say. */
export async function findEngineProblems(question: PanelQuestion): Promise<Finding[] | null> {
    const status = (await askPanel(question, 'proxyengine.status')) as {
        readonly running?: unknown;
        readonly wanted?: unknown;
    } | null;
    if (typeof status?.running !== 'boolean') {
        return null;
    }
    const isIntended = status.wanted === 'stopped';
    return status.running
        ? []
        : [
              {
                  kind: 'engine',
                  severity: isIntended ? 'info' : 'critical',
                  subject: 'engine',
                  message: isIntended ? 'The proxy engine was stopped' : 'The proxy engine does not run',
                  since: null,
                  remedy: 'POST /api/proxyengine/start'
              }
          ];
}

/** Calls an operation of the panel as the caller; null when it is refused, fails, or does not answer in time. */
export async function askPanel(
    { ctx, actor, signal }: PanelQuestion,
    id: string,
    query: Readonly<Record<string, unknown>> = {},
    params: Readonly<Record<string, string | number>> = {}
): Promise<unknown> {
    try {
        const { status, data } = await ctx.api.call(actor, { id, query, params, signal });
        return status === 200 ? data : null;
    } catch {
        return null;
    }
}
