/** What an install or an update comes to. */
import { quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { Plan } from './appstore-view.ts';
import { Changes } from './changes.tsx';

/** Warnings, images, memory, and what is new on this machine. */
export function PlanView({ plan: { warnings, images, memoryBytes, difference } }: { readonly plan: Plan }) {
    return (
        <>
            {warnings.map((each) => (
                <p key={each} class="notice">
                    {each}
                </p>
            ))}
            <dl class="facts">
                <div>
                    <dt>{t('Images')}</dt>
                    <dd>{images.map(({ image }) => image).join(', ')}</dd>
                </div>
                {memoryBytes === null ? null : (
                    <div>
                        <dt>{t('Memory')}</dt>
                        <dd>{quantity(memoryBytes, 'byte')}</dd>
                    </div>
                )}
            </dl>
            <h3>{t('What is new on this machine')}</h3>
            <Changes difference={difference} />
        </>
    );
}
