/** The plan of an import: what each section would create, change, remove and leave. */
import { Badge } from '../../kit/display/value.tsx';
import { t } from '../../words/t.ts';
import { sectionTitles } from './sections.ts';

interface SectionPlan {
    readonly create: readonly string[];
    readonly update: readonly string[];
    readonly delete: readonly string[];
    readonly notes: readonly { readonly name: string; readonly message: string }[];
    readonly counts: {
        readonly create: number;
        readonly update: number;
        readonly delete: number;
        readonly unchanged: number;
    };
}

/** A plan as the dry run answers it. */
export interface PlanView {
    readonly sections: Readonly<Record<string, SectionPlan>>;
    readonly plugins: readonly {
        readonly name: string;
        readonly install: string | null;
        readonly data: string | null;
        readonly notes: readonly string[];
    }[];
    readonly reload: boolean;
    readonly notes: readonly string[];
}

/** Shows what an import would add, change and remove. */
export function Plan({ plan }: { readonly plan: PlanView }) {
    const titles = sectionTitles();
    return (
        <section aria-label={t('The plan')}>
            <h3>{t('The plan')}</h3>
            <div class="scroll">
                <table>
                    <caption class="offscreen">{t('The plan')}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{t('Section')}</th>
                            <th scope="col">{t('New')}</th>
                            <th scope="col">{t('Changed')}</th>
                            <th scope="col">{t('Removed')}</th>
                            <th scope="col">{t('As it is')}</th>
                        </tr>
                    </thead>
                    <tbody>
                        {Object.entries(plan.sections).map(([name, section]) => (
                            <tr key={name}>
                                <td data-title={t('Section')}>
                                    <strong>{titles[name] ?? name}</strong>
                                </td>
                                <td data-title={t('New')}>
                                    <Names names={section.create} count={section.counts.create} tone="good" />
                                </td>
                                <td data-title={t('Changed')}>
                                    <Names names={section.update} count={section.counts.update} tone="busy" />
                                </td>
                                <td data-title={t('Removed')}>
                                    <Names names={section.delete} count={section.counts.delete} tone="bad" />
                                </td>
                                <td data-title={t('As it is')}>
                                    <span class="number dim">{section.counts.unchanged}</span>
                                </td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            <ul class="bare">
                {notesOf(plan).map((note) => (
                    <li key={note} class="warning">
                        {note}
                    </li>
                ))}
            </ul>
            <p class="dim">
                {plan.reload
                    ? t('The engine reloads; connections stay.')
                    : t('The engine does not need to reload.')}
            </p>
        </section>
    );
}

function Names({
    names,
    count,
    tone
}: {
    readonly names: readonly string[];
    readonly count: number;
    readonly tone: 'good' | 'busy' | 'bad';
}) {
    return count === 0 ? (
        <span class="dim">0</span>
    ) : (
        <span>
            <Badge text={String(count)} tone={tone} />{' '}
            <small title={names.join(', ')}>
                {names.slice(0, 3).join(', ')}
                {count > 3 ? ' …' : ''}
            </small>
        </span>
    );
}

function notesOf({ notes, sections, plugins }: PlanView): readonly string[] {
    return [
        ...notes,
        ...Object.values(sections).flatMap((section) =>
            section.notes.map(({ name, message }) => `${name}: ${message}`)
        ),
        ...plugins.flatMap(({ name, notes: own }) => own.map((note) => `${name}: ${note}`))
    ];
}
