/** What an install or an update exposes that was not there before, and what goes. */
import { Fragment } from 'preact';

import { inWords } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';
import type { Difference } from './appstore-view.ts';

/** The list; one line where nothing differs. */
export function Changes({ difference }: { readonly difference: Difference }) {
    const parts = Object.entries(difference).filter(
        ([, { added, removed }]) => added.length + removed.length > 0
    );
    return parts.length === 0 ? (
        <p class="dim">{t('Nothing differs')}</p>
    ) : (
        <dl class="difference">
            {parts.map(([name, { added, removed }]) => (
                <Fragment key={name}>
                    <dt>{t(inWords(name))}</dt>
                    {removed.map((each) => (
                        <dd key={each}>
                            <del>
                                <span class="offscreen">{t('before:')} </span>
                                {each}
                            </del>
                        </dd>
                    ))}
                    {added.map((each) => (
                        <dd key={each}>
                            <ins>
                                <span class="offscreen">{t('after:')} </span>
                                {each}
                            </ins>
                        </dd>
                    ))}
                </Fragment>
            ))}
        </dl>
    );
}
