/** What a plugin's life tells: its health, what it was refused, and what it left behind. */
import { CopyButton } from '../../kit/copy.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';
import { type PluginDetail, remedyOf } from './plugin-view.ts';

const time: Schema = { type: 'string', format: 'date-time' };

/** Its checks, each with what to do. */
export function Health({ plugin: { health } }: { readonly plugin: PluginDetail }) {
    if (health === null || health.checks.length === 0) {
        return null;
    }
    return (
        <section class="card">
            <h2>{t('Health')}</h2>
            <ul class="bare lined">
                {health.checks.map((check) => {
                    const { text, command } = remedyOf(check);
                    return (
                        <li key={check.name}>
                            <div class="fill">
                                <strong>{check.name}</strong>
                                <p class="dim">{check.evidence}</p>
                                {text === null ? null : <p>{text}</p>}
                                {command === null ? null : (
                                    <p class="row">
                                        <code>{command}</code>
                                        <CopyButton text={command} />
                                    </p>
                                )}
                            </div>
                            <Badge text={check.state} />
                        </li>
                    );
                })}
            </ul>
        </section>
    );
}

/** What it asked of the panel and did not get. */
export function Refusals({ plugin: { refused, deprecations } }: { readonly plugin: PluginDetail }) {
    if (refused.length === 0 && deprecations.length === 0) {
        return null;
    }
    return (
        <section class="card">
            <h2>{t('Refused')}</h2>
            <ul class="bare lined">
                {refused.map(({ capability, count, at }) => (
                    <li key={capability}>
                        <div class="fill">
                            <code>{capability}</code>
                        </div>
                        {t('{count} times', { count })} <Value value={at} schema={time} />
                    </li>
                ))}
                {deprecations.map(({ member, removedIn, count }) => (
                    <li key={member}>
                        <div class="fill">
                            <code>{member}</code> <small>{t('is old')}</small>
                        </div>
                        {removedIn === null ? '' : t('goes in {version}', { version: removedIn })}{' '}
                        {t('{count} times', { count })}
                    </li>
                ))}
            </ul>
        </section>
    );
}

/** What was freed when it last stopped, and what was not. */
export function Released({ plugin: { released } }: { readonly plugin: PluginDetail }) {
    if (released === null) {
        return null;
    }
    return (
        <section class="card">
            <h2>{t('When it last stopped')}</h2>
            <p>
                <Value value={released.at} schema={time} />:{' '}
                {t('{count} things were freed', { count: released.released.length })}
                {released.cut === 0 ? '' : `, ${t('{count} requests were cut', { count: released.cut })}`}
            </p>
            {[
                ...released.leaked.map(({ kind, name, error }) => `${kind} ${name}: ${error}`),
                ...released.failures
            ].map((text) => (
                <p key={text} class="failure">
                    {text}
                </p>
            ))}
        </section>
    );
}
