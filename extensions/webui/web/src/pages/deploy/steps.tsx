/** The steps of a deployment as a bar: how far it came, and how long each took. */
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { Step } from './deploy-view.ts';

/** The bar; nothing before the first step. A step is as wide as it took long, within bounds. */
export function Steps({ steps }: { readonly steps: readonly Step[] }) {
    const shown = steps.filter(({ state }) => state !== 'skipped');
    return shown.length === 0 ? null : (
        <ol class="steps" aria-label={t('Steps')}>
            {shown.map(({ name, state, seconds }) => (
                <li key={name} class={state} style={{ flexGrow: Math.min(Math.max(seconds ?? 1, 1), 30) }}>
                    <span>{t(name)}</span>
                    <small class="number">{seconds === null ? t(state) : quantity(seconds, 'second')}</small>
                </li>
            ))}
        </ol>
    );
}
