#include "transport/group_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace sparsesel {
namespace {

Status SystemStatus(const char* what) {
  const int error = errno;
  return Status::Error(SPARSESEL_UNAVAILABLE, "the group's shared memory: %s: %s", what,
                       std::generic_category().message(error))
      .WithBackendCode(error);
}

uint64_t BitOf(int32_t rank) { return uint64_t{1} << static_cast<uint32_t>(rank); }

struct flock LockOf(int32_t rank) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

// All zero at first.
struct GroupBoard::Words {
  std::atomic<uint32_t> abort;
  std::atomic<uint32_t> failure;
  std::atomic<uint64_t> left;    // ranks that have let go of everything
  std::atomic<uint64_t> locked;  // ranks that hold their lock while they live
  alignas(kPageBytes) std::atomic<uint64_t> returned[kMaxWorld][kMemories];  // by whom; [lender]
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

Status GroupBoard::Create(int32_t rank, std::shared_ptr<GroupBoard>* board, Name* name) {
  std::shared_ptr<GroupBoard> made(new GroupBoard(rank));
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) return SystemStatus("getrandom");
  absl::SNPrintF(made->name_.data(), made->name_.size(), "/sparsesel-%016x", random);
  const int file = shm_open(made->name_.data(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    const Status status = SystemStatus("shm_open");
    made->name_ = {};
    return status;
  }
  made->file_ = file;
  // All of it now: a page that the system cannot give later would end the process.
  if (const int error = posix_fallocate(file, 0, sizeof(Words)); error != 0) {
    errno = error;
    return SystemStatus("posix_fallocate");
  }
  SPARSESEL_RETURN_IF_ERROR(made->Map(file));
  *name = made->name_;
  *board = std::move(made);
  return {};
}

Status GroupBoard::Open(const Name& name, int32_t rank, std::shared_ptr<GroupBoard>* board) {
  std::shared_ptr<GroupBoard> made(new GroupBoard(rank));
  if (name[0] != '/' || std::find(name.begin(), name.end(), '\0') == name.end()) {
    return Status::Error(SPARSESEL_INTERNAL, "the group's shared memory has no name");
  }
  made->file_ = shm_open(name.data(), O_RDWR | O_CLOEXEC, 0600);
  if (made->file_ < 0) return SystemStatus("shm_open");
  SPARSESEL_RETURN_IF_ERROR(made->Map(made->file_));
  *board = std::move(made);
  return {};
}

Status GroupBoard::Map(int file) {
  struct stat found = {};
  if (fstat(file, &found) != 0) return SystemStatus("fstat");
  if (found.st_size != static_cast<off_t>(sizeof(Words))) {
    return Status::Error(SPARSESEL_MISMATCH, "the group's shared memory has %d bytes, not %d",
                         found.st_size, sizeof(Words));
  }
  void* const mapped = mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return SystemStatus("mmap");
  words_ = static_cast<Words*>(mapped);
  HoldLock();
  return {};
}

// A lock of the open file, not of the process: two ranks of one process hold one each, and closing
// another file of the same name gives neither up. Where there are no such locks a dead process is
// not noticed, and what was lent to it is kept until this one ends.
void GroupBoard::HoldLock() {
  struct flock lock = LockOf(rank_);
  if (fcntl(file_, F_OFD_SETLK, &lock) == 0) {
    words_->locked.fetch_or(BitOf(rank_), std::memory_order_acq_rel);
  }
}

GroupBoard::~GroupBoard() {
  HideName();
  if (words_ != nullptr) {
    words_->left.fetch_or(BitOf(rank_), std::memory_order_acq_rel);
    (void)munmap(words_, sizeof(Words));
  }
  if (file_ >= 0) (void)close(file_);
}

void GroupBoard::HideName() {
  if (name_[0] != '\0') (void)shm_unlink(name_.data());
  name_ = {};
}

void GroupBoard::Abort() { words_->abort.store(1, std::memory_order_release); }

bool GroupBoard::aborted() const { return words_->abort.load(std::memory_order_acquire) != 0; }

void GroupBoard::Fail(uint32_t failure) {
  uint32_t none = 0;
  (void)words_->failure.compare_exchange_strong(none, failure, std::memory_order_acq_rel);
}

uint32_t GroupBoard::failure() const { return words_->failure.load(std::memory_order_acquire); }

int32_t GroupBoard::TakeNumber() {
  const std::lock_guard lock(mutex_);
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end()) return -1;
  *free = true;
  const auto number = free - taken_.begin();
  words_->returned[rank_][number].store(0, std::memory_order_release);
  return static_cast<int32_t>(number);
}

void GroupBoard::FreeNumber(int32_t number) {
  const std::lock_guard lock(mutex_);
  taken_[static_cast<size_t>(number)] = false;
}

void GroupBoard::Return(int32_t lender, int32_t number) {
  words_->returned[lender][number].fetch_or(BitOf(rank_), std::memory_order_acq_rel);
}

bool GroupBoard::Returned(int32_t number, uint64_t borrowers) const {
  const uint64_t missing =
      borrowers & ~words_->returned[rank_][number].load(std::memory_order_acquire);
  for (int32_t rank = 0; rank < kMaxWorld; ++rank) {
    if ((missing & BitOf(rank)) != 0 && !Gone(rank)) return false;
  }
  return true;
}

bool GroupBoard::Gone(int32_t rank) const {
  if ((words_->left.load(std::memory_order_acquire) & BitOf(rank)) != 0) return true;
  if ((words_->locked.load(std::memory_order_acquire) & BitOf(rank)) == 0) return false;
  struct flock lock = LockOf(rank);
  return fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

const uint32_t* GroupBoard::abort_word() const {
  static_assert(sizeof(words_->abort) == sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(&words_->abort);
}

}  // namespace sparsesel
