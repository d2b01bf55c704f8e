// One compilation unit of a large program: containers, strings, streams, regular expressions and callbacks over types of its
// own.  VARIANT chooses which; the name of the namespace is replaced in copies of the object file, so that no two units share
// functions of their own.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#ifndef VARIANT
#define VARIANT 0
#endif

namespace unit_000 {

template <int N> struct Record {
  std::string name;
  std::vector<double> values;
  std::variant<int, double, std::string> state;
  double total() const { return std::accumulate(values.begin(), values.end(), double(N)); }
  bool operator<(const Record &other) const { return total() < other.total() || (total() == other.total() && name < other.name); }
};

template <int N> struct Store {
  std::map<std::string, Record<N>> ordered;
  std::unordered_map<std::string, std::shared_ptr<Record<N>>> shared;
  std::vector<std::function<double(const Record<N> &)>> callbacks;

  void add(const std::string &key, double value) {
    auto &record = ordered[key];
    record.name = key;
    record.values.push_back(value);
    auto &other = shared[key];
    if (!other) other = std::make_shared<Record<N>>(record);
    other->values.insert(other->values.end(), record.values.begin(), record.values.end());
    record.state = value > N ? std::variant<int, double, std::string>(value) : std::variant<int, double, std::string>(key);
  }

  double evaluate() {
    std::vector<Record<N>> sorted;
    for (const auto &entry : ordered) sorted.push_back(entry.second);
    std::sort(sorted.begin(), sorted.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.name.size() < b.name.size(); });
    callbacks.push_back([this](const Record<N> &record) { return record.total() * double(shared.count(record.name)); });
    double sum = 0;
    for (const auto &record : sorted)
      for (const auto &callback : callbacks) sum += callback(record);
    return sum + std::visit([](const auto &value) { return double(sizeof(value)); }, sorted.front().state);
  }

  std::string text() const {
    std::ostringstream stream;
    for (const auto &entry : ordered) stream << entry.first << ' ' << entry.second.total() << ' ' << N << '\n';
    return stream.str();
  }
};

template <int N> double used(const std::string &input) {
  Store<N> store;
  std::istringstream stream(input);
  std::string word;
  while (stream >> word) store.add(word, double(word.size()) / N);
  return store.evaluate() + double(store.text().size());
}

#if VARIANT == 3
static double matched(const std::string &input) {
  static const std::regex pattern("([a-z]+)=([0-9]+)(,[a-z]+)*");
  double sum = 0;
  for (auto it = std::sregex_iterator(input.begin(), input.end(), pattern); it != std::sregex_iterator(); ++it)
    sum += std::stod((*it)[2].str()) + double((*it)[1].length());
  return sum;
}
#else
static double matched(const std::string &input) { return double(std::count(input.begin(), input.end(), '=')); }
#endif

double entry(const std::string &input) {
  double sum = matched(input) + used<VARIANT + 1>(input);
#if VARIANT >= 1
  sum += used<VARIANT + 20>(input);
#endif
#if VARIANT >= 2
  sum += used<VARIANT + 40>(input);
#endif
  return sum;
}

}  // namespace unit_000
