#include <unordered_map>

#include "log/impl.h"

namespace hone {

namespace {

constexpr int64_t kBatchBytes = 8 << 20;  // that are written at once

}  // namespace

struct LogMerge::Impl {
  explicit Impl(Log& target) : log(target) {}

  Log& log;
  std::vector<Record> records;
  std::vector<KnownText> texts;
  std::vector<BestPlan> plans;
  int64_t bytes = 0;  // of the three, about
  // How often each record came, by checksum: so often it is to be there.
  std::unordered_map<uint64_t, int64_t> seen;
  Counts counts;

  template <class Row>
  Status take(std::vector<Row>& rows, const Row& row, size_t size) {
    HONE_TRY(check(row));
    rows.push_back(row);
    bytes += static_cast<int64_t>(size) + 200;
    if (bytes < kBatchBytes) return {};
    return write();
  }

  Status write() {
    Log::Impl& to = *log.impl_;
    std::lock_guard lock(to.mutex);
    sqlite::Transaction transaction = HONE_TRY(sqlite::Transaction::begin(*to.database));
    for (const KnownText& text : texts) HONE_TRY(add(*to.database, text));
    for (Record& record : records) HONE_TRY(add(*to.database, record));
    for (const BestPlan& best : plans) HONE_TRY(add(*to.database, best));
    HONE_TRY(transaction.commit());
    texts.clear();
    records.clear();
    plans.clear();
    bytes = 0;
    return {};
  }

  Status add(sqlite::Database& database, const KnownText& text) {
    HONE_TRY(rows::insert(database, text));
    ++(database.changes() > 0 ? counts.added : counts.known).texts;
    return {};
  }

  Status add(sqlite::Database& database, Record& record) {
    const uint64_t digest = rows::digest(record);
    const int64_t there =
        HONE_TRY(database.integer("SELECT count(*) FROM records WHERE digest = ?1", digest));
    if (there >= ++seen[digest]) {
      ++counts.known.records;
      return {};
    }
    record.id = 0;
    ++counts.added.records;
    return rows::insert(database, record);
  }

  Status add(sqlite::Database& database, const BestPlan& best) {
    static const std::string sql =
        fmt::format("SELECT {} FROM plans WHERE graph = ?1 AND target = ?2 AND threads = ?3",
                    rows::kPlans.columns);
    std::optional<BestPlan> there;
    {
      sqlite::Rows row = HONE_TRY(database.query(sql, best.graph, best.target, best.threads));
      if (HONE_TRY(row.next())) there = rows::read_plan(row);
    }
    if (there && there->low >= best.low) {
      ++counts.known.plans;
      return {};
    }
    ++counts.added.plans;
    return rows::replace(database, best);
  }
};

LogMerge::LogMerge(Log& log) : impl_(new Impl(log)) {}
LogMerge::~LogMerge() = default;

Status LogMerge::take(const Record& record) {
  return impl_->take(impl_->records, record,
                     record.choice.size() + record.detail.size() + 8 * record.seconds.size());
}

Status LogMerge::take(const KnownText& text) {
  return impl_->take(impl_->texts, text, text.text.size());
}

Status LogMerge::take(const BestPlan& best) {
  return impl_->take(impl_->plans, best, best.plan.size());
}

Status LogMerge::take_all(const Log& other) {
  const auto take_one = [this](const auto& row) { return take(row); };
  HONE_TRY(other.visit_texts(take_one));
  HONE_TRY(other.visit({}, take_one));
  return other.visit_plans(take_one);
}

Result<LogMerge::Counts> LogMerge::finish() {
  HONE_TRY(impl_->write());
  return impl_->counts;
}

}  // namespace hone
